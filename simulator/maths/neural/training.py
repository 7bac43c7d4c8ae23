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
StackedLayers = list[tuple[Reals, Reals | None]]

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

    def is_same(self, other: Task) -> bool:
        """Whether both are the same training; data only grow."""
        return self.theta is other.theta and len(self.y) == len(other.y)


@dataclass(frozen=True)
class Descent:
    """Gradient descent on all data (paper 002, eq. 1 and appendix E).

    Args:
        network: the shape of the networks.
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
        """New weights of each task, (A, p); all have equally many data."""
        n = len(tasks[0].y)
        rate, factor, decay = self._rates(n)
        theta = np.array([task.theta for task in tasks], dtype=self.precision)
        gradient = np.empty_like(theta)
        pulled: Reals | float = 0.0
        if self.loss == "paper":
            pulled = rate * decay * np.array([task.centre for task in tasks], dtype=self.precision)
        work, layers, out = _Pass(self.network, tasks, self.precision), self._views(theta), self._views(gradient)
        for _ in range(self.steps):
            work.gradient(layers, out)
            theta *= 1.0 - rate * decay
            gradient *= rate * factor
            theta -= gradient
            theta += pulled
        return theta.astype(np.float64, copy=False)

    def _rates(self, n: int) -> tuple[float, float, float]:
        """Learning rate, factor of the gradient of sum (f - y)^2 / 2, and decay of the weights."""
        m = self.network.width
        if self.loss == "public":
            return 0.01 if self.lr is None else self.lr, 2.0 / n, self.lam / n
        return 1.0 / (m * self.lam + m * n * self.network.layers) if self.lr is None else self.lr, 1.0, m * self.lam

    def _views(self, theta: Reals) -> StackedLayers:
        """(W_l, b_l) by layer as views of theta (A, p), (A, rows, columns) and (A, rows)."""
        layers: StackedLayers = []
        for W, b in self.network.slices:
            shape = (len(theta), *self.network.shapes[len(layers)])
            layers.append((theta[:, W].reshape(shape), None if b is None else theta[:, b]))
        return layers


class _Pass:
    """Data of some trainings, with room for what a pass over all of it needs; (A, units, data)."""

    def __init__(self, network: Network, tasks: Sequence[Task], precision: Precision) -> None:
        self._scale = network.scale
        self._X = np.array([task.X for task in tasks], dtype=precision)
        self._inputs = np.ascontiguousarray(self._X.transpose(0, 2, 1))
        self._targets = self._scale * np.array([task.y for task in tasks], dtype=precision)
        shape = (len(tasks), network.width, self._X.shape[1])
        self._values = [np.empty(shape, precision) for _ in range(network.layers - 1)]
        self._gate = np.empty(shape, dtype=bool)
        self._back = [np.empty(shape, precision) for _ in range(min(2, network.layers - 1))]

    def gradient(self, layers: StackedLayers, out: StackedLayers) -> None:
        """Write the gradients of sum_s (f(x_s) - y_s)^2 / 2 to ``out``."""
        before = self._inputs
        for (W, b), values in zip(layers, self._values, strict=False):
            np.matmul(W, before, out=values)
            if b is not None:
                values += b[:, :, None]
            before = np.maximum(values, 0.0, out=values)
        self._backward(layers, out, self._residual(*layers[-1]))

    def _residual(self, W: Reals, b: Reals | None) -> Reals:
        """scale (f(x_s) - y_s), (A, n): the derivative with respect to u."""
        residual: Reals = np.matmul(W, self._values[-1])[:, 0]
        if b is not None:
            residual += b
        residual *= self._scale * self._scale
        residual -= self._targets
        return residual

    def _backward(self, layers: StackedLayers, out: StackedLayers, residual: Reals) -> None:
        W, b = out[-1]
        np.matmul(residual[:, None], self._values[-1].transpose(0, 2, 1), out=W)
        if b is not None:
            np.add.reduce(residual, axis=1, keepdims=True, out=b)
        back = self._back[0]
        np.multiply(np.greater(self._values[-1], 0.0, out=self._gate), residual[:, None], out=back)
        factors = layers[-1][0].transpose(0, 2, 1)  # still to be multiplied to the rows of back
        for index in range(len(layers) - 2, -1, -1):
            W, b = out[index]
            np.matmul(back, self._values[index - 1].transpose(0, 2, 1) if index else self._X, out=W)
            W *= factors
            if b is not None:
                np.add.reduce(back, axis=2, out=b)
                b *= factors[:, :, 0]
            if index:
                below = self._back[1] if back is self._back[0] else self._back[0]
                np.matmul((layers[index][0] * factors).transpose(0, 2, 1), back, out=below)
                below *= np.greater(self._values[index - 1], 0.0, out=self._gate)
                back, factors = below, np.ones_like(below[:, :, :1])


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
            if done.is_same(task):
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
