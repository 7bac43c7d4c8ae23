"""Async-LinUCB-AM (Li and Wang 2022, the authors' program): Async-LinUCB where a part of theta is each client's own.

``config`` has besides ``shared``, the number of leading features whose parameter is common, and ``steps``.
"""

import numpy as np

from tests.oracles import SERVER, Coins, Config, Kernel, OracleRun, Turns, World
from tests.oracles.async_lin_ucb import TIE


def run(turns: Turns, world: World, kernel: Kernel | None, config: Config, coins: Coins, agents: int) -> OracleRun:
    out, c, d = OracleRun(), config, world.arms(0, 1).shape[1]
    g = (d + 1) // 2 if c.shared is None else c.shared
    everyone = range(agents)

    def zeros(p: int) -> list:  # type: ignore[type-arg]
        return [np.zeros((p, p)), np.zeros(p), 0]

    def plus(one: list, other: list) -> list:  # type: ignore[type-arg]
        return [a + b for a, b in zip(one, other, strict=True)]

    def log_det(A: np.ndarray) -> float:
        return float(np.linalg.slogdet(A + c.lam * np.eye(len(A)))[1])

    def bound(known: list, n: int, X: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        A, b, _ = known
        p, alpha = len(b), c.alpha
        V = A + c.lam * np.eye(p)
        if alpha == "theory":
            alpha = c.sub_gaussian * np.sqrt(p * np.log(1 + n / (p * c.lam)) + 2 * np.log(1 / c.delta))
            alpha += np.sqrt(c.lam) * c.norm
        means = np.array([x @ np.linalg.solve(V, b) for x in X])
        return means + alpha * np.sqrt(np.array([x @ np.linalg.solve(V, x) for x in X]))

    local, upload, missing, acts_on = ([zeros(g) for _ in everyone] for _ in range(4))
    own = [zeros(d - g) for _ in everyone]
    aggregate = zeros(g)
    out.downloads = 0  # type: ignore[attr-defined]

    for step in turns:
        triggered = []
        for i in sorted(step):
            common = acts_on[i] if c.refresh == "at_next_pull" else local[i]

            def model(X: np.ndarray, common: list = common, i: int = i) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
                n = common[2]
                return bound(common, n, X[:, :g]), bound(own[i], n, X[:, g:])

            x, y, _ = out.act(world, i, model, 1.0)
            y_g, y_l = divided(local[i], own[i], x[:g], x[g:], y, c)
            news = [np.outer(x[:g], x[:g]), y_g * x[:g], 1]
            local[i], upload[i] = plus(local[i], news), plus(upload[i], news)
            own[i] = plus(own[i], [np.outer(x[g:], x[g:]), y_l * x[g:], 1])
            acts_on[i] = local[i]
            if log_det(local[i][0]) - log_det(local[i][0] - upload[i][0]) > np.log(c.gamma_u) + TIE:
                triggered.append(i)
        for i in triggered:
            out.rounds += 1
            out.send("upload", i, SERVER, g * g + g + 1)
            aggregate = plus(aggregate, upload[i])
            missing = [missing[j] if j == i else plus(missing[j], upload[i]) for j in everyone]
            upload[i] = zeros(g)
            for j in everyone:
                if log_det(aggregate[0]) - log_det(aggregate[0] - missing[j][0]) > np.log(c.gamma_d) + TIE:
                    out.send("download", SERVER, j, g * g + g + 1)
                    out.downloads += 1  # type: ignore[attr-defined]
                    local[j] = plus(local[j], missing[j])
                    missing[j] = zeros(g)
    return out


def divided(common: list, own: list, x_g: np.ndarray, x_l: np.ndarray, y: float, c: Config) -> tuple[float, float]:  # type: ignore[type-arg]
    """The parts of a reward, by alternating minimisation."""
    theta_l = np.linalg.solve(own[0] + c.lam * np.eye(len(x_l)), own[1])
    y_g = y - theta_l @ x_l
    for _ in range(c.steps):
        theta_g = shortened(inverse(common[0] + np.outer(x_g, x_g)) @ (common[1] + y_g * x_g), c.norm)
        y_l = y - theta_g @ x_g
        theta_l = shortened(inverse(own[0] + np.outer(x_l, x_l)) @ (own[1] + y_l * x_l), c.norm)
        y_g = y - theta_l @ x_l
    return float(y_g), float(y_l)


def inverse(A: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.pinv(A, rcond=1e-9, hermitian=True))


def shortened(theta: np.ndarray, norm: float) -> np.ndarray:
    length = float(np.linalg.norm(theta))
    return theta if length <= norm else theta * (norm / length)
