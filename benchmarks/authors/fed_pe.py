"""Fed-PE against github.com/Ruiquan5514/Federated-Linear-Contextual-Bandits (``COBAND_FED_PE_CODE``: a checkout).

The program runs everything when it is imported, so its functions are taken out of the file. On both sides the n-th
dealt pull of an agent's arm in a phase has the same noise, so that worlds are paired, and regret is that of dealt
pulls. The program's ``alpha`` and the smallest length of an arm are given to ours.
"""

from __future__ import annotations

import ast
import contextlib
import io
import math
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.authors import compared, program
from coband.extensions.conformance.runs import algorithm, plan_of, world
from coband.simulator.arrays import FloatArray
from coband.simulator.core.engine import Engine
from coband.simulator.core.randomness.streams import Streams

AGENTS, ARMS, PHASES = 10, 3, 15
PROBLEM: dict[str, Any] = {
    "kind": "own_arms",
    "arms": {"kind": "box", "dimension": 3, "count": ARMS, "low": [0.5, 0, 0], "high": [0.6, 0.4, 0.4]},
    "special": {"low": [0.7, 0, 0], "high": [0.8, 0.3, 0.3]},
    "parameters": "per_arm",
    "theta": [1, 0, 0],
    "noise": 1,
}
FUNCTIONS = {"fed_pe": "Fed_PE", "enhanced": "Enhanced", "collaborative": "Collaborate"}
Found = tuple[float, int, float]
"""Regret of dealt pulls, estimates sent, CPU seconds."""


def noise_of(seed: int) -> Callable[[int, int, int], Callable[[], float]]:
    """The noise of dealt pulls: a stream for each agent, arm and phase."""
    return cache(lambda agent, arm, phase: np.random.default_rng((seed, agent, arm, phase)).standard_normal)


def ours(variant: str, seed: int) -> Found:
    """Our run of so many phases."""
    drawn, d, noise, regret = world(PROBLEM, seed, AGENTS), 3, noise_of(seed), 0.0
    one, k = 2 * math.log(10 * ARMS * PHASES), 1.0
    while k * d < one + d * math.log(k) + d:
        k += 0.1
    alpha = math.sqrt(min(one + d * math.log(k) + d, 2 * math.log(20 * AGENTS * ARMS * PHASES)))
    least = min(float(np.linalg.norm(drawn.arms(agent, 1), axis=1).min()) for agent in range(AGENTS))
    entry, pull = algorithm("fed_pe"), drawn.pull

    def watched(agent: int, turn: int, arm: int) -> tuple[float, float]:
        nonlocal regret
        reward, lost = pull(agent, turn, arm)
        node: Any = engine.agents[agent]
        if node._at < node._informative:
            regret += lost
            reward = float(drawn.means(agent, turn)[arm]) + noise(agent, arm, node.phase)()
        return reward, lost

    drawn.pull = watched
    turns = ARMS + sum(2**p + ARMS for p in range(1, PHASES))
    plan = {"agents": {"count": AGENTS}, "schedule": {"kind": "rounds", "turns": turns}, "network": {}}
    config = entry.config.model_validate({"variant": variant, "alpha": alpha, "shortest": least})
    started = time.process_time()
    engine = Engine(plan_of(plan), entry, config, drawn, Streams(seed))
    result = engine.run()
    return regret, int(result.totals["estimates_sent"]), time.process_time() - started


def theirs(code: dict[str, Any], variant: str, seed: int) -> Found:
    """A run of the program on the same arms; the estimates that its clients send are counted at its server."""
    drawn, functions = world(PROBLEM, seed, AGENTS), code["F"]
    c = np.stack([drawn.arms(agent, 1) for agent in range(AGENTS)])
    code["l"], code["Theta"] = float(np.vecdot(c, c).min()), np.tile([1.0, 0.0, 0.0], (ARMS, 1))
    owner, noise = {x.tobytes(): agent for agent, own in enumerate(c) for x in own}, noise_of(seed)
    sent = phase = 0
    name = "Broadcast_collaborate" if variant == "collaborative" else "Broadcast"
    original = getattr(functions, name)

    def counted(*given: Any) -> Any:
        nonlocal sent, phase
        local = given[2] if variant == "collaborative" else given[1]
        sent, phase = sent + int((local != functions.Max).any(axis=2).sum()), phase + 1
        return original(*given)

    def pull(a: int, x: FloatArray, Theta: FloatArray, number: int = 1) -> float:
        return float(Theta[a] @ x) + noise(owner[x.tobytes()], a, phase)()

    functions.PullArm = pull
    setattr(functions, name, counted)
    started = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        regret = code[FUNCTIONS[variant]](c, code["Theta"], PHASES)[1][-1]
    seconds = time.process_time() - started
    setattr(functions, name, original)
    # Its first pulls, one of each arm, are in its regret nowhere; ours are.
    first = sum(float(means.max() * ARMS - means.sum()) for means in (drawn.means(agent, 1) for agent in range(AGENTS)))
    return regret * AGENTS + first, sent, seconds


def functions_of(code: ModuleType) -> dict[str, Any]:
    """The program's algorithms, out of its main file."""
    tree = ast.parse((Path(str(code.__file__)).parent / "main.py").read_text())
    kept = [part for part in tree.body if isinstance(part, ast.FunctionDef)]
    space: dict[str, Any] = {"np": np, "math": math, "time": time, "F": code, "minVar": code.minVar, "Max": code.Max}
    exec(compile(ast.Module(kept, []), "main.py", "exec"), space)
    return space


def main(worlds: int = 30, variant: str = "fed_pe") -> int:
    """Compare; 1 if something is not equivalent."""
    code = functions_of(
        program("COBAND_FED_PE_CODE", "Ruiquan5514/Federated-Linear-Contextual-Bandits", "Functions.py")
    )
    pairs = [(ours(variant, seed), theirs(code, variant, seed)) for seed in range(worlds)]
    print(f"{variant}: {AGENTS} agents with {ARMS} arms of their own, {PHASES} phases")
    return 0 if compared(pairs, "regret", "estimates") else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2]), *sys.argv[2:3]))
