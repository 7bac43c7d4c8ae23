"""Async-LinUCB (Li and Wang 2022): clients upload and the server downloads, each when a determinant has grown enough.

``refresh: at_next_pull``: an agent acts on what it knew right after its last own pull, as in the authors' code.
"""

import numpy as np

from tests.oracles import SERVER, Coins, Config, Kernel, OracleRun, Turns, World
from tests.oracles.dis_lin_ucb import linear

TIE = 1e-12  # a ratio that equals gamma but for rounding is not above it


def run(turns: Turns, world: World, kernel: Kernel | None, config: Config, coins: Coins, agents: int) -> OracleRun:
    out = OracleRun()
    d, c = world.arms(0, 1).shape[1], config
    size = d * d + d + 1

    def zeros() -> list:  # type: ignore[type-arg]
        return [[np.zeros((d, d)), np.zeros(d), 0] for _ in range(agents)]

    def plus(one: list, other: list) -> list:  # type: ignore[type-arg]
        return [a + b for a, b in zip(one, other, strict=True)]

    def ratio(A, without) -> float:  # type: ignore[no-untyped-def]
        return float(
            np.linalg.slogdet(A + c.lam * np.eye(d))[1] - np.linalg.slogdet(A - without + c.lam * np.eye(d))[1]
        )

    local, upload_buffer, download_buffer, acts_on = zeros(), zeros(), zeros(), zeros()
    aggregate = zeros()[0]
    out.downloads = 0  # type: ignore[attr-defined]

    for step in turns:
        triggered = []
        for i in sorted(step):
            A, b, n = acts_on[i] if c.refresh == "at_next_pull" else local[i]
            alpha = c.alpha
            if alpha == "theory":
                spread = d * np.log(1 + n / (d * c.lam)) + 2 * np.log(1 / c.delta)
                alpha = c.sub_gaussian * np.sqrt(spread) + np.sqrt(c.lam) * c.norm
            x, y, _ = out.act(world, i, linear(A + c.lam * np.eye(d), b), alpha)
            news = [np.outer(x, x), y * x, 1]
            local[i], upload_buffer[i] = plus(local[i], news), plus(upload_buffer[i], news)
            acts_on[i] = local[i]
            if ratio(local[i][0], upload_buffer[i][0]) > np.log(c.gamma_u) + TIE:
                triggered.append(i)
        for i in triggered:
            out.rounds += 1
            out.send("upload", i, SERVER, size)
            aggregate = plus(aggregate, upload_buffer[i])
            for j in range(agents):
                if j != i:
                    download_buffer[j] = plus(download_buffer[j], upload_buffer[i])
            upload_buffer[i] = zeros()[0]
            for j in range(agents):
                if ratio(aggregate[0], download_buffer[j][0]) > np.log(c.gamma_d) + TIE:
                    out.send("download", SERVER, j, size)
                    out.downloads += 1  # type: ignore[attr-defined]
                    local[j] = plus(local[j], download_buffer[j])
                    download_buffer[j] = zeros()[0]

    used = acts_on if c.refresh == "at_next_pull" else local
    out.models = [linear(A + c.lam * np.eye(d), b) for A, b, _ in used]
    return out
