"""FN-UCB: "Federated Neural Bandits" (Dai et al. 2023), algorithms 1 and 2, with dense inverses and stored sums."""

import numpy as np

from tests.oracles import SERVER, Coins, Config, Kernel, OracleRun, Turns, World
from tests.oracles.neural import enter, flat, gradient, initial, output, shaped, train
from tests.oracles.posterior import FloatArray


class Agent:
    """The variables of algorithm 1, line 1."""

    def __init__(self, p: int, theta_0: FloatArray, lam: float, agents: int) -> None:
        self.W_sync, self.B_sync = np.zeros((p, p)), np.zeros(p)
        self.W_new, self.B_new = np.zeros((p, p)), np.zeros(p)
        self.V_local = lam * np.eye(p)
        self.inverses = [np.eye(p) / lam for _ in range(agents)]
        self.mean_inverse = np.eye(p) / lam
        self.theta_sync, self.theta_own = theta_0.copy(), theta_0.copy()
        self.alpha, self.t, self.t_last = 0.0, 0, 0
        self.data: list[tuple[FloatArray, float]] = []
        self.offered: list[FloatArray] = []
        self.newest: tuple[FloatArray, float] | None = None


def run(turns: Turns, world: World, kernel: Kernel | None, config: Config, coins: Coins, agents: int) -> OracleRun:
    out = OracleRun()
    dimension = world.arms(0, 1).shape[1]
    like = initial(config, dimension, coins(0))
    theta_0 = flat(like)
    p = len(theta_0)
    everyone = [Agent(p, theta_0, config.lam, agents) for _ in range(agents)]
    storage = {"theta": theta_0.copy()}  # what the published code keeps once for all

    for step in turns:
        triggered = []
        for i in sorted(step):
            if act(out, world, i, everyone[i], config, like, storage):
                triggered.append(i)
        if triggered:
            for i in triggered:
                out.send("sync_request", i, SERVER, 0)
            synchronise(out, everyone, config, like, storage)
    out.states = everyone  # type: ignore[attr-defined]
    out.storage = storage  # type: ignore[attr-defined]
    return out


def feature(x: FloatArray, config: Config, like: list, storage: dict) -> FloatArray:  # type: ignore[type-arg]
    """g(x; theta_0)/sqrt(m); at the drifted weights where the storage is shared."""
    layers = shaped(storage["theta"], like) if config.networks == "shared_storage" else like
    return gradient(layers, enter(x, config))


def only_diagonal(M: FloatArray, config: Config) -> FloatArray:
    return np.diag(np.diag(M)) if config.diagonal else M


def act(out, world, i, a, config, like, storage) -> bool:  # type: ignore[no-untyped-def]
    """Lines 3 to 11; true when the agent signals."""
    lam = config.lam
    p = len(a.B_new)
    chosen = {}

    def scores(arms: FloatArray) -> tuple[FloatArray, FloatArray]:
        a.offered += list(arms)
        V = lam * np.eye(p) + a.W_sync + a.W_new
        theta = np.linalg.solve(V, a.B_sync + a.B_new)
        G = [feature(x, config, like, storage) for x in arms]
        means = np.array([g @ theta for g in G])
        if config.diagonal:
            spread = means.max() - means.min()
            means = (means - means.min()) / spread if spread > 0 else 0.0 * means
        ucb_a = np.array(
            [mu + config.nu * np.sqrt(lam * (g @ np.linalg.solve(V, g))) for mu, g in zip(means, G, strict=True)]
        )
        weight = {"both": a.alpha, "a_only": 0.0, "b_only": 1.0}[config.use]
        total = (1 - weight) * ucb_a
        if weight != 0:
            total = total + weight * np.array(
                [ucb_b(a, x, g, config, like, storage) for x, g in zip(arms, G, strict=True)]
            )
        chosen["G"] = G
        return total, np.zeros(len(arms))

    x, y, _ = out.act(world, i, scores, 0.0)
    g = chosen["G"][out.pulls[-1][2]]
    a.t += 1
    a.W_new = a.W_new + only_diagonal(np.outer(g, g), config)
    a.B_new = a.B_new + y * g
    a.V_local = a.V_local + only_diagonal(np.outer(g, g), config)
    a.newest = (enter(x, config), y)
    if config.training_points == "all":
        a.data.append(a.newest)
    before, now = lam * np.eye(p) + a.W_sync, lam * np.eye(p) + a.W_sync + a.W_new
    if config.trigger == "diagonal":
        before, now = np.diag(np.diag(before)), np.diag(np.diag(now))
    gain = np.linalg.slogdet(now)[1] - np.linalg.slogdet(before)[1]
    return bool(config.threshold == 0 or (a.t - a.t_last) * gain > config.threshold)  # D = 0: every round


def ucb_b(a, x, g, config, like, storage) -> float:  # type: ignore[no-untyped-def]
    theta = a.theta_own if config.average == "none" else a.theta_sync
    if config.networks == "shared_storage":
        theta = storage["theta"]
    inverses = [a.mean_inverse] if config.less_comm else a.inverses
    width = np.mean([np.sqrt(g @ P @ g) for P in inverses])
    return float(output(shaped(theta, like), enter(x, config), config) + config.nu2 * np.sqrt(config.lam) * width)


def weight_of(a, config, like, storage) -> float:  # type: ignore[no-untyped-def]
    """Line 15."""
    if config.use == "a_only":
        return 0.0
    if config.alpha == "schedule":
        return min(1.0, max(0, a.t - config.alpha_start) / config.alpha_ramp)
    if not a.offered:
        return 0.0  # it has seen nothing of the domain
    P = np.linalg.inv(a.V_local)
    sigmas = []
    for x in a.offered[: config.alpha_points]:
        g = feature(x, config, like, storage)
        sigmas.append(np.sqrt(config.lam * (g @ P @ g)))
    return min(sigmas) / max(sigmas)


def loss(a, config, like) -> float:  # type: ignore[no-untyped-def]
    """Mean squared error of an agent's network on its own training set."""
    if not a.data:
        return float("inf")
    layers = shaped(a.theta_own, like)
    return sum((output(layers, x, config) - y) ** 2 for x, y in a.data) / len(a.data)


def synchronise(out, everyone, config, like, storage) -> None:  # type: ignore[no-untyped-def]
    """Lines 13 to 18 and algorithm 2."""
    out.rounds += 1
    N, p = len(everyone), len(everyone[0].B_new)
    matrix = p if config.diagonal else p * p
    for i in range(N):
        out.send("sync_start", SERVER, i, 0)
    alphas, thetas, losses, inverses = [], [], [], []
    W, B = np.zeros((p, p)), np.zeros(p)
    for i, a in enumerate(everyone):
        alpha = weight_of(a, config, like, storage)
        due = config.use != "a_only" and a.t <= config.train_until and (config.train_when == "always" or alpha > 0)
        if due and config.training_points == "communicated" and a.newest is not None:
            a.data.append(a.newest)
        a.newest = None
        if due and a.data:
            if config.networks == "shared_storage":
                storage["theta"] = train(storage["theta"], like, a.data, config)
            else:
                start = a.theta_own if config.train_from == "own" else a.theta_sync
                a.theta_own = train(start, like, a.data, config)
        alphas.append(alpha)
        thetas.append(storage["theta"].copy() if config.networks == "shared_storage" else a.theta_own)
        losses.append(loss(a, config, like))
        inverses.append(np.linalg.inv(a.V_local))
        W, B = W + a.W_new, B + a.B_new
        out.send("upload", i, SERVER, 2 * matrix + 2 * p + 1 + (1 if config.average == "best" else 0))
    theta_sync = thetas[losses.index(min(losses))] if config.average == "best" else np.mean(thetas, axis=0)
    for i, a in enumerate(everyone):
        a.W_sync, a.B_sync = a.W_sync + W, a.B_sync + B
        a.W_new, a.B_new = np.zeros((p, p)), np.zeros(p)
        a.theta_sync, a.alpha, a.t_last = theta_sync, min(alphas), a.t
        a.inverses, a.mean_inverse = inverses, np.mean(inverses, axis=0)
        out.send("model", SERVER, i, matrix + 2 * p + 1 + (1 if config.less_comm else N) * matrix)
