"""A fully connected ReLU network, one input at a time, by loops over layers and units.

Dai et al. 2023, appendix B: f_1 = W_1 x, f_l = W_l ReLU(f_(l-1)), f = sqrt(m) f_L. ``init: normal`` has biases and no
factor. A network is a list of (W, b) by layer, b None without biases; its flat form lists W row by row, then b, by
layer.
"""

from typing import Any

import numpy as np

from tests.oracles.posterior import FloatArray

Layers = list[tuple[FloatArray, FloatArray | None]]


def doubled(config: Any) -> bool:
    return bool(config.init == "paper" if config.duplicate_input is None else config.duplicate_input)


def enter(x: FloatArray, config: Any) -> FloatArray:
    """The network's input: x, or [x; x]/sqrt(2), which has the length of x and equal halves (assumption 1)."""
    return np.concatenate([x, x]) / np.sqrt(2.0) if doubled(config) else x


def initial(config: Any, dimension: int, rng: np.random.Generator) -> Layers:
    """theta_0."""
    m, L = config.width, config.layers
    d = 2 * dimension if doubled(config) else dimension
    layers: Layers = []
    for layer in range(1, L + 1):
        fan_in, fan_out = (d if layer == 1 else m), (1 if layer == L else m)
        if config.init == "normal":
            W = np.array([[rng.standard_normal() for _ in range(fan_in)] for _ in range(fan_out)])
            layers.append((W, np.array([rng.standard_normal() for _ in range(fan_out)])))
        elif layer < L:
            half = np.array(
                [[rng.standard_normal() * np.sqrt(4 / m) for _ in range(fan_in // 2)] for _ in range(m // 2)]
            )
            zero = np.zeros_like(half)
            layers.append((np.block([[half, zero], [zero, half]]), None))
        else:
            w = np.array([rng.standard_normal() * np.sqrt(2 / m) for _ in range(m // 2)])
            layers.append((np.concatenate([w, -w])[None, :], None))
    return layers


def scale(config: Any) -> float:
    return float(np.sqrt(config.width)) if config.init == "paper" else 1.0


def passes(layers: Layers, x: FloatArray) -> list[FloatArray]:
    """The values f_1, ..., f_L before the activation."""
    values, h = [], x
    for W, b in layers:
        z = np.array([sum(W[i, j] * h[j] for j in range(len(h))) for i in range(len(W))])
        z = z if b is None else z + b
        values.append(z)
        h = np.array([max(value, 0.0) for value in z])
    return values


def output(layers: Layers, x: FloatArray, config: Any) -> float:
    return scale(config) * float(passes(layers, x)[-1][0])


def gradient(layers: Layers, x: FloatArray) -> FloatArray:
    """Gradient of f_L, flat: g/sqrt(m) of the paper's f, g itself of the unscaled one."""
    values = passes(layers, x)
    inputs = [x, *(np.maximum(z, 0.0) for z in values[:-1])]
    back = np.ones(1)
    parts: list[FloatArray] = []
    for index in range(len(layers) - 1, -1, -1):
        W, b = layers[index]
        own = [np.array([back[i] * h for i in range(len(W)) for h in inputs[index]])]
        parts = own + ([] if b is None else [back]) + parts
        if index:
            gate = np.array([1.0 if z > 0 else 0.0 for z in values[index - 1]])
            back = gate * np.array([sum(back[i] * W[i, j] for i in range(len(W))) for j in range(W.shape[1])])
    return np.concatenate(parts)


def flat(layers: Layers) -> FloatArray:
    return np.concatenate([part for W, b in layers for part in ([W.ravel()] if b is None else [W.ravel(), b])])


def shaped(theta: FloatArray, like: Layers) -> Layers:
    layers: Layers = []
    at = 0
    for W, b in like:
        new = theta[at : at + W.size].reshape(W.shape)
        at += W.size
        if b is not None:
            layers.append((new, theta[at : at + b.size]))
            at += b.size
        else:
            layers.append((new, None))
    return layers


def train(start: FloatArray, like: Layers, data: list[tuple[FloatArray, float]], config: Any) -> FloatArray:
    """``steps`` steps of gradient descent over all the data.

    public: mean squared error, every step also shrinks the weights by lr lam / n. paper: eq. 1, around theta_0.
    Weights that are not numbers in the end, or beyond 1e30, are theta_0's instead.
    """
    n, m, theta, first = len(data), config.width, start.copy(), flat(like)
    c = scale(config)
    lr = config.lr
    if lr is None:
        lr = 0.01 if config.train == "public" else 1.0 / (m * config.lam + m * n * config.layers)
    for _ in range(config.steps):
        total = np.zeros_like(theta)
        layers = shaped(theta, like)
        for x, y in data:
            residual = output(layers, x, config) - y
            total += residual * c * gradient(layers, x)
        if config.train == "public":
            theta = theta - lr * (2.0 * total / n + config.lam / n * theta)
        else:
            theta = theta - lr * (total + m * config.lam * (theta - first))
    for weight in theta:
        if not abs(weight) <= 1e30:
            return first
    return theta
