"""Training of networks by gradient descent on all data, several networks of one shape and equally many data at a time.

Networks that are trained together have the bits that they have when they are trained one by one: numpy multiplies a
stack of matrices slice by slice, and all else goes element by element or row by row.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.neural.network import Network

Precision = Literal["float64", "float32"]
Reals = NDArray[np.floating[Any]]

LARGEST_WEIGHT = 1e30
"""Beyond this the products of a network overflow sooner or later."""
CACHED = 60_000
"""Numbers per hidden layer above which networks are trained one by one: together they would not fit the cache."""


@dataclass(frozen=True, eq=False)
class Task:
    """One network's training.

    Args:
        theta: the weights to start from, (p,).
        centre: theta_0, (p,).
        X: inputs, (n, d); y: rewards, (n,); n >= 1.
    """

    theta: FloatArray
    centre: FloatArray
    X: FloatArray
    y: FloatArray


@dataclass(frozen=True)
class Descent:
    """Gradient descent on all data (Dai et al. 2023, eq. 1 and appendix E).

    Args:
        steps: number of steps J.
        lr: learning rate; None: 0.01 (public), 1/(m lam + m n L) (paper, theorem 1 with C_4 = 1 and n for T).
        lam: ridge parameter lam.
        loss: ``public``: mean squared error and weight decay lam/n; ``paper``: eq. 1,
            sum (f - y)^2 / 2 + m lam ||theta - theta_0||^2 / 2.
        precision: of the steps; weights go in and come out as float64.
    """

    network: Network
    steps: int
    lr: float | None
    lam: float
    loss: Literal["public", "paper"] = "public"
    precision: Precision = "float64"

    def __call__(self, task: Task) -> FloatArray:
        """New weights after ``steps`` steps, (p,)."""
        theta: FloatArray = self.together([task])[0]
        return theta

    def together(self, tasks: Sequence[Task]) -> FloatArray:
        """New weights of each task, (A, p), which may have diverged; all have equally many data."""
        n = len(tasks[0].y)
        rate, factor, decay = self._rates(n)
        order = self.network.order
        theta = np.array([task.theta[order] for task in tasks], dtype=self.precision)
        gradient = np.empty_like(theta)
        pulled: Reals | None = None
        if self.loss == "paper":
            pulled = rate * decay * np.array([task.centre[order] for task in tasks], dtype=self.precision)
        work = _Pass(self.network, tasks, self.precision, self._views(theta), self._views(gradient))
        shrunk, step = 1.0 - rate * decay, rate * factor
        with np.errstate(over="ignore", invalid="ignore"):  # see has_diverged
            for _ in range(self.steps):
                work.gradient()
                theta *= shrunk
                gradient *= step
                theta -= gradient
                if pulled is not None:
                    theta += pulled
        found = np.empty(theta.shape)
        found[:, order] = theta
        return found

    def _rates(self, n: int) -> tuple[float, float, float]:
        """Learning rate, factor of the gradient of sum (f - y)^2 / 2, and decay of the weights."""
        m = self.network.width
        if self.loss == "public":
            return 0.01 if self.lr is None else self.lr, 2.0 / n, self.lam / n
        return 1.0 / (m * self.lam + m * n * self.network.layers) if self.lr is None else self.lr, 1.0, m * self.lam

    def _views(self, theta: Reals) -> list[Reals]:
        """[W_l b_l] by layer, (A, rows, columns + 1), or W_l where there are no biases, as views of theta (A, p)."""
        layers, at = list[Reals](), 0
        for rows, columns in self.network.shapes:
            shape = (len(theta), rows, columns + self.network.biases)
            layers.append(theta[:, at : at + rows * shape[2]].reshape(shape))
            at += rows * shape[2]
        return layers


def has_diverged(theta: FloatArray) -> bool:
    """Whether steps were too long for the data, so that weights (p,) are not numbers, or too large to compute with."""
    return not np.abs(theta).max() <= LARGEST_WEIGHT


class _Pass:
    """Data of some trainings, with room for what a pass over all of it needs; (A, units, data).

    A last unit that is always 1 has the biases as its weights, so that products of matrices do what they do. Views are
    made once, as at some hundreds of data making them takes a tenth of the time.

    Args:
        layers: [W_l b_l] by layer, (A, rows, columns + 1), as they are at each pass.
        out: where their gradients go.
    """

    def __init__(
        self, network: Network, tasks: Sequence[Task], precision: Precision, layers: list[Reals], out: list[Reals]
    ) -> None:
        n, units, width, hidden = len(tasks[0].y), network.inputs + network.biases, network.width, network.layers - 1
        inputs = np.ones((len(tasks), units, n), precision)
        inputs[:, : network.inputs] = [task.X.T for task in tasks]
        shape = (len(tasks), width, n)
        values = [np.ones((len(tasks), width + network.biases, n), precision) for _ in range(hidden)]
        self._squared_scale = network.scale * network.scale
        self._targets = network.scale * np.array([task.y for task in tasks], dtype=precision)
        self._positive = np.empty(shape, dtype=bool)
        self._open = [np.empty(shape, precision) for _ in range(hidden)]  # 1 where a unit is positive, 0 elsewhere
        self._spare = np.empty(shape if hidden > 1 else 0, precision)
        before = [inputs, *values]
        self._forward = [
            (W, below, above[:, :width], gate)
            for W, below, above, gate in zip(layers, before, values, self._open, strict=False)
        ]
        self._last, self._last_out, self._top, self._top_rows = layers[-1], out[-1], values[-1], values[-1].mT
        self._residuals = np.empty((len(tasks), 1, n), precision)
        self._factors = layers[-1][:, :, :width].mT
        rooms = [np.empty_like(below) for below in before[: min(2, hidden)]]
        weighted = [rooms[min(index, 1)] for index in range(hidden)]
        self._backward = [
            (index, layers[index][:, :, :width], before[index], weighted[index], weighted[index].mT, out[index])
            for index in reversed(range(hidden))
        ]

    def gradient(self) -> None:
        """Write the gradients of sum_s (f(x_s) - y_s)^2 / 2 to ``out``."""
        positive = self._positive
        for W, below, units, gate in self._forward:
            np.matmul(W, below, out=units)
            np.copyto(gate, np.greater(units, 0.0, out=positive))
            units *= gate
        residuals = np.matmul(self._last, self._top, out=self._residuals)
        residual = residuals[:, 0]
        if self._squared_scale != 1.0:
            residual *= self._squared_scale
        residual -= self._targets  # scale (f(x_s) - y_s), (A, n): the derivative with respect to u
        np.matmul(residuals, self._top_rows, out=self._last_out)
        # The derivatives with respect to a layer's units are factors * back * residual. The residual is multiplied to
        # the layer's inputs, which are fewer, and the factors to the gradient, which is small.
        back, spare, factors = self._open[-1], self._spare, self._factors
        for index, W, below, weighted, weighted_rows, out in self._backward:
            np.multiply(below, residuals, out=weighted)
            np.matmul(back, weighted_rows, out=out)
            out *= factors
            if index:
                np.matmul((W * factors).mT, back, out=spare)
                spare *= self._open[index - 1]
                back, spare, factors = spare, self._open[index - 1], np.ones_like(factors)


class TrainingPool:
    """Trains together what several owners will ask for one after the other.

    An owner announces what it would ask for now. Who asks first has all that have equally many data trained; a training
    that was done in advance and is then not asked for shows that owners do not go together, and ends the practice.
    """

    def __init__(self, descent: Descent) -> None:
        self._descent = descent
        self._announced: dict[Hashable, Task] = {}
        self._done: dict[Hashable, tuple[Task, FloatArray]] = {}
        self._together = True

    def announce(self, owner: Hashable, task: Task) -> None:
        """What the owner would ask for now; takes the place of what it announced before."""
        if self._together:
            self._announced[owner] = task

    def train(self, owner: Hashable, task: Task) -> FloatArray:
        """New weights, (p,)."""
        self._announced.pop(owner, None)
        if owner in self._done:
            done, theta = self._done.pop(owner)
            if done.theta is task.theta and len(done.y) == len(task.y):  # the same training, as data only grow
                return theta
            self._together, self._announced = False, {}
        room = CACHED // (len(task.y) * self._descent.network.width) - 1
        fellows = [who for who, other in self._announced.items() if len(other.y) == len(task.y)][: max(room, 0)]
        tasks = [task, *(self._announced.pop(fellow) for fellow in fellows)]
        thetas = self._descent.together(tasks)
        for fellow, done, theta in zip(fellows, tasks[1:], thetas[1:], strict=True):
            self._done[fellow] = (done, theta.copy())
        own: FloatArray = thetas[0].copy()
        return own
