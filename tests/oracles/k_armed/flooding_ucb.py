"""UCB with flooding, and flooding with absorption (Lee, Schmid, Yun 2023, "Flooding with Absorption: An Efficient
Protocol for Heterogeneous Bandits over Complex Networks", arXiv 2303.05445).

Config: ``hops``, ``absorption``. A message is (origin, time, arm, reward); the first copy that comes decides how many
hops remain, later ones and an agent's own are ignored.
"""

from math import log

from tests.oracles import Coins, Config, OracleRun, Turns, World
from tests.oracles.k_armed import Post, When, always, numbers, pull, ucb
from tests.oracles.local import Adjacency


def run(
    turns: Turns, world: World, config: Config, coins: Coins, agents: int, adjacency: Adjacency, present: When = always
) -> OracleRun:
    out, K = OracleRun(), world.arms(0, 1).shape[1]
    post = Post(out, agents, adjacency, present)
    t, arms = [0] * agents, [numbers(world, v) for v in range(agents)]
    n, s = [[0] * K for _ in range(agents)], [[0.0] * K for _ in range(agents)]
    seen: list[set[tuple[int, int]]] = [set() for _ in range(agents)]

    def take_in(v: int) -> list[tuple[int, tuple[int, int, int, float], int]]:
        """Use what came first; (sender, message, hops that remain) of what has to be forwarded."""
        forwards = []
        for sender, (message, remaining) in post.read(v):
            origin, time, k, y = message
            if (origin, time) in seen[v]:
                continue
            seen[v].add((origin, time))
            if k in arms[v]:
                n[v][k] += 1
                s[v][k] += y
            if remaining > 0 and not (config.absorption and k in arms[v]):
                forwards.append((sender, message, remaining))
        return forwards

    for step, acting in enumerate(turns):
        for v in sorted(acting):
            forwards = take_in(v)
            place = t[v] if t[v] < len(arms[v]) else ucb(world, v, arms[v], n[v], s[v], 3 * log(t[v]))
            t[v] += 1
            k, y = arms[v][place], pull(out, world, v, t[v], place)
            n[v][k] += 1
            s[v][k] += y
            seen[v].add((v, t[v]))
            post.tell(step, "flooded", v, 4, ((v, t[v], k, y), config.hops - 1))
            for sender, message, remaining in forwards:
                post.tell(step, "flooded", v, 4, (message, remaining - 1), but=sender)
        post.arrive()

    for v in range(agents):
        take_in(v)
        out.state.append({"n": n[v], "s": s[v]})
    return out
