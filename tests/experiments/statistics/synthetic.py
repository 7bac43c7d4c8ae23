"""Synthetic studies: claims whose truth is known, replications until each is decided, verdicts over all of them.

``python -m tests.experiments.statistics.synthetic 2000`` prints the table of docs/evidence.md.
"""

import sys
from collections.abc import Callable

import numpy as np

from coband.extensions.evidence.e_values import closed_ebh
from coband.simulator.arrays import FloatArray
from coband.simulator.experiments.statistics.evidence import LARGEST, share_process, t_process

CLAIMS, MOST = 40, 60
"""Claims of a study, half of them exactly at the border, and the most replications of each."""
EFFECTS = (0.4, 0.8, 1.5, 3.0)
STOP = np.log(2 * 40)
"""Where half of the claims are at the border, closed e-BH asks for 40."""
Shape = tuple[int, ...]
Draw = Callable[[np.random.Generator, Shape], FloatArray]
Process = Callable[[FloatArray], FloatArray]


def gaussian(rng: np.random.Generator, shape: Shape) -> FloatArray:
    """Independent Gaussian differences."""
    return rng.normal(size=shape)


def correlated(rng: np.random.Generator, shape: Shape) -> FloatArray:
    """Claims that share their jobs: Gaussian, with a correlation of 0.8 or -0.8 between any two."""
    return np.sqrt(0.8) * rng.normal(size=(1, *shape[1:])) + np.sqrt(0.2) * rng.normal(size=shape)


def lognormal(spread: float) -> Draw:
    """A long tail on one side; the logarithm has this standard deviation."""

    def draw(rng: np.random.Generator, shape: Shape) -> FloatArray:
        return (np.exp(spread * rng.normal(size=shape) - spread**2 / 2) - 1) / np.sqrt(np.exp(spread**2) - 1)

    return draw


def outlier(chance: float, size: float) -> Draw:
    """Gaussian with a rare value of so many deviations that balances the mean."""

    def draw(rng: np.random.Generator, shape: Shape) -> FloatArray:
        x = rng.normal(size=shape) + size * ((rng.random(shape) < chance) - chance)
        return x / np.sqrt(1 + size**2 * chance * (1 - chance))

    return draw


KINDS: dict[str, Draw] = {
    "Gaussian": gaussian,
    "Gaussian, correlated between claims": correlated,
    "lognormal, s = 0.25": lognormal(0.25),
    "lognormal, s = 0.5": lognormal(0.5),
    "lognormal, s = 1": lognormal(1.0),
    "one in 20 is 5 deviations off": outlier(0.05, 5.0),
    "one in 20 is 10 deviations off": outlier(0.05, 10.0),
    "one in 100 is 50 deviations off": outlier(0.01, 50.0),
}


def means(x: FloatArray) -> FloatArray:
    """Log e-values for a positive mean after every replication."""
    n = np.arange(1, MOST + 1)
    mean = x.cumsum(axis=1) / n
    variance = np.maximum((np.square(x).cumsum(axis=1) - n * np.square(mean)) / np.maximum(n - 1, 1), 1e-300)
    return t_process(np.where(n > 1, mean * np.sqrt(n / variance), 0.0), n)


SIGNS = np.array([[share_process(k, n, 0.5) if k <= n else -LARGEST for k in range(MOST + 1)] for n in range(MOST + 1)])


def signs(x: FloatArray) -> FloatArray:
    """Log e-values for a positive median after every replication."""
    return SIGNS[np.arange(1, MOST + 1), (x > 0).cumsum(axis=1)]


def false_share(x: FloatArray, rng: np.random.Generator, process: Process) -> tuple[float, float]:
    """The share of false verdicts among those of one study, and the share of the other claims that are decided.

    Every claim stops as soon as one of its e-values is large. Any verdict on a claim at the border is false.

    Args:
        x: differences whose mean (or median, for signs) is 0, shape (`CLAIMS`, `MOST`).
        rng: of the claims' directions.
        process: of the claims.
    """
    truth, sides = np.zeros((CLAIMS, 1)), rng.choice((-1.0, 1.0), size=(2, CLAIMS, 1))
    truth[CLAIMS // 2 :, 0] = np.resize(EFFECTS, CLAIMS // 2)
    x, truth = sides[0] * x + sides[1] * truth, (sides[1] * truth)[:, 0]
    both = np.stack([process(x), process(-x)])
    enough = both.max(axis=0) >= STOP
    stop = np.where(enough.any(axis=1), enough.argmax(axis=1), MOST - 1)
    up, down = both[:, np.arange(CLAIMS), stop]
    high, low = np.maximum(up, down), np.minimum(up, down)
    published = np.array(closed_ebh(high.tolist(), low.tolist(), 0.05)) & (high >= np.log(20))
    wrong = published & np.where(up > down, truth <= 0, truth >= 0)
    return float(wrong.sum() / max(1, published.sum())), float(published[CLAIMS // 2 :].mean())


def rates(draw: Draw, studies: int, process: Process = means) -> tuple[float, float]:
    """False discovery rate and power over some studies."""
    rng = np.random.default_rng(39)
    centre = float(np.median(draw(rng, (1, 1_000_000)))) if process is signs else 0.0
    found = np.array([false_share(draw(rng, (CLAIMS, MOST)) - centre, rng, process) for _ in range(studies)])
    return float(found[:, 0].mean()), float(found[:, 1].mean())


if __name__ == "__main__":
    for kind, one in KINDS.items():
        cells = [
            f"{100 * value:.1f} %" for process in (means, signs) for value in rates(one, int(sys.argv[1]), process)
        ]
        print(f"| {kind} | {' | '.join(cells)} |", flush=True)
