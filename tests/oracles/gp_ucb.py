"""GP-UCB as Pavlovic et al. 2024 runs it on every agent alone (its N-KernelUCB), and IGP-UCB's width with ``beta:
theory``.

Mean and deviation are those of eq. 3 and eq. 4 of Pavlovic et al. 2024: the deviation is not divided by lambda.
"""

import math

from tests.oracles import Coins, Config, Kernel, OracleRun, Turns, World
from tests.oracles.posterior import FloatArray, Point, exact, log_det


def run(turns: Turns, world: World, kernel: Kernel, config: Config, coins: Coins, agents: int) -> OracleRun:
    out = OracleRun()
    own: list[list[Point]] = [[] for _ in range(agents)]

    for step in turns:
        for i in sorted(step):

            def model(X: FloatArray, data: list[Point] = own[i]) -> tuple[FloatArray, FloatArray]:
                mean, deviation = exact(X, data, kernel, config.lam)
                return mean, deviation * math.sqrt(config.lam)

            x, y, _ = out.act(world, i, model, width(own[i], kernel, config))
            own[i].append((x, y))

    return out


def width(data: list[Point], kernel: Kernel, config: Config) -> float:
    """beta: a number, or B + R sqrt(2 (information gain so far + 1 + log(1/delta))).

    With lam < 1 R is divided by sqrt(lam).
    """
    if config.beta != "theory":
        return float(config.beta)
    gain = 0.5 * log_det(data, kernel, config.lam)
    R = config.R if config.lam >= 1 else config.R / math.sqrt(config.lam)
    return float(config.B + R * math.sqrt(2 * (gain + 1 + math.log(1 / config.delta))))
