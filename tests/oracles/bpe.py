"""Batched pure exploration (Li and Scarlett 2022, Algorithm 1), by one agent or by N that tell each other rewards.

The domain is ``world.arms(0, 1)``, the same at every turn; ``config`` holds ``T`` (turns that every agent has at
least), ``beta`` (a number), ``lam`` and ``share``. Deviations are those of Pavlovic et al. 2024, eq. 4, not divided by
lambda.

With ``share: rewards`` a batch has N N_i points, of which agent n pulls the points n, n + N, n + 2 N, ...; with
``share: nothing`` every agent has batches of its own.
"""

import math
from dataclasses import dataclass, field

from tests.oracles import SERVER, Coins, Config, Kernel, OracleRun, Turns, World
from tests.oracles.posterior import FloatArray, exact


@dataclass
class BpeRun(OracleRun):
    """Further: the active points that each agent has at the end."""

    active: list[list[int]] = field(default_factory=list)


@dataclass
class Group:
    """Agents that explore together, and the batch under way."""

    members: list[int]
    active: list[int]
    number: int = 0
    chosen: list[int] = field(default_factory=list)
    rewards: dict[int, list[float]] = field(default_factory=dict)


def run(turns: Turns, world: World, kernel: Kernel, config: Config, coins: Coins, agents: int) -> BpeRun:
    U = world.arms(0, 1)
    out = BpeRun()
    everything = list(range(len(U)))
    together = config.share == "rewards"
    groups = [Group(list(range(agents)), everything)] if together else [Group([i], everything) for i in range(agents)]
    for group in groups:
        group.rewards = {i: [] for i in group.members}
    lengths = batches(config.T)

    for step in turns:
        for i in sorted(step):
            group = next(group for group in groups if i in group.members)
            own = group.rewards[i]
            place = group.members.index(i) + len(group.members) * len(own)
            arm = maximum_variance(group, place, U, kernel, config)
            turn = 1 + sum(1 for pull in out.pulls if pull[0] == i)
            reward, regret = world.pull(i, turn, arm)
            out.pulls.append((i, turn, arm, reward, regret))
            own.append(reward)
            last = group.number == len(lengths) - 1
            if not last and together and len(own) == lengths[group.number]:
                out.send("batch_rewards", i, SERVER, len(own))
        for group in groups:
            if group.number == len(lengths) - 1:
                continue
            if all(len(own) == lengths[group.number] for own in group.rewards.values()):
                end(out, group, U, kernel, config)
    out.active = [next(group.active for group in groups if i in group.members) for i in range(agents)]
    return out


def batches(T: int) -> list[int]:
    """N_1, N_2, ... with N_i = ceil(sqrt(T N_(i-1))) and N_0 = 1, the last one cut so that they add up to T."""
    lengths, length, t = [], 1, 0
    while t < T:
        length = math.ceil(math.sqrt(T * length))
        lengths.append(min(length, T - t))
        t += length
    return lengths or [0]


def maximum_variance(group: Group, place: int, U: FloatArray, kernel: Kernel, config: Config) -> int:
    """The point of that place in the batch: each has the largest deviation given those before it in the batch.

    Deviations that differ in the tenth digit alone are equal, and the first point is taken.
    """
    while len(group.chosen) <= place:
        before = [(U[arm], 0.0) for arm in group.chosen]
        deviation = exact(U[group.active], before, kernel, config.lam)[1]
        enough = (1 - 1e-9) * deviation.max() ** 2
        best = [arm for arm, s in zip(group.active, deviation, strict=True) if s**2 >= enough]
        group.chosen.append(best[0])
    return group.chosen[place]


def end(out: OracleRun, group: Group, U: FloatArray, kernel: Kernel, config: Config) -> None:
    """The end of a batch: what cannot be the best by the batch's own data is dropped."""
    N = len(group.members)
    data = []
    for n, own in enumerate(group.rewards.values()):
        data += [(U[group.chosen[n + N * k]], y) for k, y in enumerate(own)]
    if config.share == "rewards":
        out.rounds += 1
        pulled = {tuple(x) for x, _ in data}
        for i in group.members:
            out.send("reward_sums", SERVER, i, len(pulled))
    mean, deviation = exact(U[group.active], data, kernel, config.lam)
    deviation = deviation * math.sqrt(config.lam)
    keep = mean + config.beta * deviation >= (mean - config.beta * deviation).max()
    group.active = [arm for arm, kept in zip(group.active, keep, strict=True) if kept]
    group.number, group.chosen = group.number + 1, []
    group.rewards = {i: [] for i in group.members}
