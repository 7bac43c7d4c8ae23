"""Fully connected ReLU networks: values, and gradients for every input at once (Dai et al. 2023, appendix B).

With h_0 = x, h_l = ReLU(W_l h_(l-1) + b_l) and u = W_L h_(L-1) + b_L the output is f = scale * u. Two parametrisations:

* ``paper``: no biases, scale = sqrt(m); the features of the neural tangent kernel are grad f / sqrt(m);
* ``normal``: biases, scale = 1; the features are grad f.

In both the features are the gradient of u, and that is what :meth:`Network.features` gives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np

from coband.simulator.arrays import FloatArray, IndexArray

Init = Literal["paper", "normal"]
Layers = list[tuple[FloatArray, FloatArray | None]]


@dataclass(frozen=True)
class Network:
    """The shape of a network; its parameters theta (p,) list W_1 row by row, b_1, W_2, ....

    Args:
        width: units m of every hidden layer.
        layers: depth L >= 2, the number of weight matrices.
        init: the parametrisation.

    Raises:
        ValueError: fewer than two layers, or an odd width or number of inputs with ``paper``.
    """

    inputs: int
    width: int
    layers: int = 2
    init: Init = "paper"

    def __post_init__(self) -> None:
        if self.layers < 2 or self.width < 1:
            raise ValueError(f"layers(={self.layers}) must be >= 2 and width(={self.width}) >= 1.")
        if self.init == "paper" and (self.inputs % 2 or self.width % 2):
            raise ValueError(
                f"inputs(={self.inputs}) and width(={self.width}) must be even with init: paper, whose weights are two "
                "equal blocks; set duplicate_input: true, an even width, or init: normal."
            )

    @property
    def scale(self) -> float:
        """Output f = scale * u."""
        return math.sqrt(self.width) if self.init == "paper" else 1.0

    @property
    def biases(self) -> bool:
        """Whether layers have biases b_l."""
        return self.init == "normal"

    @cached_property
    def shapes(self) -> list[tuple[int, int]]:
        """(rows, columns) of W_1 to W_L."""
        sizes = [self.inputs, *[self.width] * (self.layers - 1), 1]
        return [(out, into) for into, out in pairwise(sizes)]

    @cached_property
    def size(self) -> int:
        """Number of parameters p."""
        return sum(rows * (columns + self.biases) for rows, columns in self.shapes)

    @cached_property
    def slices(self) -> list[tuple[slice, slice | None]]:
        """Where W_l and b_l stand in theta, by layer; no b_l without biases."""
        slices: list[tuple[slice, slice | None]] = []
        at = 0
        for rows, columns in self.shapes:
            W = slice(at, at + rows * columns)
            b = slice(W.stop, W.stop + rows) if self.biases else None
            slices.append((W, b))
            at = W.stop if b is None else b.stop
        return slices

    @cached_property
    def order(self) -> IndexArray:
        """Numbers of the parameters, (p,), in an order in which each bias follows the row of weights of its unit."""
        layers = self.views(np.arange(float(self.size)))
        order = np.concatenate([(W if b is None else np.column_stack([W, b])).ravel() for W, b in layers])
        return order.astype(np.intp)

    def views(self, theta: FloatArray) -> Layers:
        """(W_l, b_l) by layer as views of theta; b_l is None without biases."""
        return [
            (theta[W].reshape(shape), None if b is None else theta[b])
            for shape, (W, b) in zip(self.shapes, self.slices, strict=True)
        ]

    def initial(self, rng: np.random.Generator) -> FloatArray:
        """theta_0. paper: two equal diagonal blocks N(0, 4/m) per layer, last layer (w, -w), w ~ N(0, 2/m).

        normal: every weight and bias N(0, 1). With ``paper``, f(x; theta_0) = 0 for x with equal halves.
        """
        if self.init == "normal":
            return rng.standard_normal(self.size)
        theta = np.zeros(self.size)
        *hidden, (last, _) = self.views(theta)
        for W, _ in hidden:
            rows, columns = W.shape[0] // 2, W.shape[1] // 2
            block = math.sqrt(4.0 / self.width) * rng.standard_normal((rows, columns))
            W[:rows, :columns] = W[rows:, columns:] = block
        w = math.sqrt(2.0 / self.width) * rng.standard_normal(self.width // 2)
        last[0] = np.concatenate([w, -w])
        return theta

    def _hidden(self, layers: Layers, X: FloatArray) -> list[FloatArray]:
        """h_0 = X to h_(L-1), each (..., n, units)."""
        values = [X]
        for W, b in layers[:-1]:
            z = values[-1] @ W.T
            if b is not None:
                z += b
            values.append(np.maximum(z, 0.0, out=z))
        return values

    def _output(self, layers: Layers, last: FloatArray) -> FloatArray:
        W, b = layers[-1]
        u: FloatArray = last @ W[0]
        return u if b is None else u + b[0]

    def values(self, theta: FloatArray, X: FloatArray) -> FloatArray:
        """f(x; theta) of the rows of X (..., n, inputs), shape (..., n)."""
        layers = self.views(theta)
        return self.scale * self._output(layers, self._hidden(layers, X)[-1])

    def features(self, theta: FloatArray, X: FloatArray) -> FloatArray:
        """Gradients of u with respect to theta, one row per row of X (..., n, inputs), (..., n, p)."""
        layers = self.views(theta)
        hidden = self._hidden(layers, X)
        rows = X.shape[:-1]
        G = np.empty((*rows, self.size))
        (W, b), end = layers[-1], self.size
        if b is not None:
            G[..., -1] = 1.0
            end -= 1
        G[..., end - self.width : end] = hidden[-1]
        end -= self.width
        back = W * (hidden[-1] > 0.0)
        for index in range(len(layers) - 2, -1, -1):
            W, b = layers[index]
            if b is not None:
                G[..., end - len(b) : end] = back
                end -= len(b)
            block = G[..., end - W.size : end].reshape(*rows, *W.shape)
            np.multiply(back[..., :, None], hidden[index][..., None, :], out=block)
            end -= W.size
            if index:
                back = (back @ W) * (hidden[index] > 0.0)
        return G
