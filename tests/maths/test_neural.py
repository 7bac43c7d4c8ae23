"""Networks: gradients against finite differences and autograd, initialisation, training against loops."""

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coband.simulator.maths.neural.network import Init, Network
from coband.simulator.maths.neural.training import Descent, Precision, Task, TrainingPool, has_diverged
from tests.every import every
from tests.oracles import neural as oracle

DEPTHS = [2, 3, 5]
INITS: list[Init] = ["paper", "normal"]


def case(init: Init, layers: int) -> tuple[Network, Any, Any]:
    """A network, weights away from the initial ones, inputs."""
    rng = np.random.default_rng(layers)
    network = Network(4, 6, layers, init)
    theta = network.initial(rng) + 0.1 * rng.standard_normal(network.size)
    return network, theta, rng.standard_normal((7, 4))


@pytest.mark.parametrize("layers", DEPTHS)
@pytest.mark.parametrize("init", INITS)
def test_gradients_are_finite_differences(init: Init, layers: int) -> None:
    network, theta, X = case(init, layers)
    step = 1e-6
    numeric = np.empty((len(X), network.size))
    for index in range(network.size):
        moved = np.zeros(network.size)
        moved[index] = step
        numeric[:, index] = (network.values(theta + moved, X) - network.values(theta - moved, X)) / (2 * step)
    assert network.features(theta, X) * network.scale == pytest.approx(numeric, abs=1e-6)


@pytest.mark.parametrize("layers", DEPTHS)
@pytest.mark.parametrize("init", INITS)
def test_gradients_are_those_of_autograd(init: Init, layers: int) -> None:
    torch = pytest.importorskip("torch")
    network, theta, X = case(init, layers)
    weights = torch.tensor(theta, requires_grad=True)
    for x, gradient in zip(X, network.features(theta, X), strict=True):
        h, at = torch.tensor(x), 0
        for index, (rows, columns) in enumerate(network.shapes):
            W = weights[at : at + rows * columns].reshape(rows, columns)
            at += rows * columns
            h = W @ (torch.relu(h) if index else h)
            if init == "normal":
                h = h + weights[at : at + rows]
                at += rows
        (expected,) = torch.autograd.grad(h[0], weights)
        assert gradient == pytest.approx(expected.numpy(), abs=1e-12)


@every("loss", ["public", "paper"])
@every("layers", DEPTHS)
@every("init", INITS)
def test_training_is_the_plain_loop(init: Init, layers: int, loss: Any) -> None:
    network, theta, X = case(init, layers)
    y = np.cos(X[:, 0])
    config = SimpleNamespace(
        init=init, duplicate_input=False, width=6, layers=layers, lam=0.3, lr=None, steps=5, train=loss
    )
    like = oracle.initial(config, 4, np.random.default_rng(layers))
    theta_0 = oracle.flat(like)
    assert network.initial(np.random.default_rng(layers)) == pytest.approx(theta_0)
    trained = Descent(network, 5, None, 0.3, loss)(Task(theta, theta_0, X, y))
    assert trained == pytest.approx(oracle.train(theta, like, list(zip(X, y, strict=True)), config), abs=1e-12)


@pytest.mark.parametrize("layers", DEPTHS)
def test_the_papers_network_is_zero_on_equal_halves(layers: int) -> None:
    network = Network(6, 8, layers, "paper")
    theta = network.initial(np.random.default_rng(0))
    X = np.random.default_rng(1).standard_normal((5, 3))
    assert network.values(theta, np.hstack([X, X])) == pytest.approx(np.zeros(5), abs=1e-14)
    assert np.abs(network.values(theta, np.hstack([X, -X]))).max() > 0.01


def test_sizes() -> None:
    assert Network(10, 20).size == 220
    assert Network(10, 20, init="normal").size == 20 * 11 + 21
    assert Network(10, 20, layers=3).size == 200 + 400 + 20


def test_training_lowers_the_loss() -> None:
    network, theta, X = case("normal", 2)
    y = np.cos(X[:, 0])
    trained = Descent(network, 200, 0.01, 0.1)(Task(theta, theta, X, y))
    losses = [np.mean((network.values(weights, X) - y) ** 2) for weights in (theta, trained)]
    assert losses[1] < losses[0] / 4


def tasks(network: Network, sizes: list[int]) -> list[Task]:
    """Trainings of networks with weights and data of their own."""
    rng = np.random.default_rng(sum(sizes))
    made = []
    for size in sizes:
        X = rng.standard_normal((size, network.inputs)) / np.sqrt(network.inputs)
        made.append(Task(network.initial(rng), network.initial(rng), X, np.cos(X[:, 0])))
    return made


@every("size", [1, 2, 3, 10, 33, 150])
@every("layers", DEPTHS)
@every("init", INITS)
@every("loss", ["public", "paper"])
def test_networks_trained_together_have_the_bits_of_networks_trained_alone(
    init: Init, layers: int, size: int, loss: Any
) -> None:
    network = Network(6, 20, layers, init)
    descent = Descent(network, 4, 1e-6, 0.3, loss)
    together = tasks(network, [size] * 4)
    assert np.isfinite(descent.together(together)).all()
    assert np.array_equal(descent.together(together), np.array([descent(task) for task in together]))


@pytest.mark.parametrize("init", INITS)
def test_single_precision(init: Init) -> None:
    network = Network(6, 20, 3, init)
    [task] = tasks(network, [40])
    double, single = (Descent(network, 30, 1e-4, 0.3, "public", kind)(task) for kind in ("float64", "float32"))
    assert single.dtype == double.dtype == np.float64
    assert single == pytest.approx(double, abs=1e-4)
    assert not np.array_equal(single, double)
    assert np.abs(double - task.theta).max() > 1e-3


class Counting(Descent):
    """Notes how many networks are trained at a time."""

    def together(self, tasks: Any) -> Any:
        groups.append(len(tasks))
        return super().together(tasks)


groups: list[int] = []


def test_a_pool_trains_equal_sizes_together() -> None:
    network = Network(4, 4, 2)
    descent = Counting(network, 2, 0.01, 0.1)
    pool, all_tasks = TrainingPool(descent), tasks(network, [5, 5, 7, 5])
    for owner, task in enumerate(all_tasks):
        pool.announce(owner, task)
    groups.clear()
    found = [pool.train(owner, task) for owner, task in enumerate(all_tasks)]
    assert groups == [3, 1]
    assert np.array_equal(found, [Descent(network, 2, 0.01, 0.1)(task) for task in all_tasks])


def test_a_pool_stops_training_in_advance_when_it_was_in_vain() -> None:
    network = Network(4, 4, 2)
    pool = TrainingPool(Counting(network, 2, 0.01, 0.1))
    first, second, other = tasks(network, [5, 5, 6])
    pool.announce(0, first)
    pool.announce(1, second)
    groups.clear()
    pool.train(0, first)
    assert np.array_equal(pool.train(1, other), Descent(network, 2, 0.01, 0.1)(other))
    for owner in (0, 1):
        pool.announce(owner, other)
    pool.train(0, other)
    assert groups == [2, 1, 1]


def test_a_pool_leaves_large_trainings_alone() -> None:
    network = Network(2, 100, 2)
    pool = TrainingPool(Counting(network, 1, 0.01, 0.1))
    large = tasks(network, [400, 400])
    for owner, task in enumerate(large):
        pool.announce(owner, task)
    groups.clear()
    for owner, task in enumerate(large):
        pool.train(owner, task)
    assert groups == [1, 1]


@pytest.mark.parametrize(("inputs", "width", "layers"), [(3, 4, 2), (4, 3, 2), (4, 4, 1)])
def test_impossible_shapes(inputs: int, width: int, layers: int) -> None:
    with pytest.raises(ValueError, match=r"must be (even|>= 2)"):
        Network(inputs, width, layers)


@pytest.mark.parametrize("weights", [[np.nan, 1.0], [1.0, np.inf], [0.0, -1e31]])
def test_weights_that_cannot_be_computed_with_have_diverged(weights: list[float]) -> None:
    assert has_diverged(np.array(weights))


@pytest.mark.parametrize("weights", [[0.0], [1.0, -1e30]])
def test_weights_that_can_be_computed_with_have_not_diverged(weights: list[float]) -> None:
    assert not has_diverged(np.array(weights))


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_training_with_steps_that_are_too_long_diverges_silently(precision: Precision) -> None:
    network = Network(3, 4, 2, "normal")
    rng = np.random.default_rng(0)
    theta = network.initial(rng)
    task = Task(theta, theta, 100.0 * rng.standard_normal((4, 3)), rng.standard_normal(4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert has_diverged(Descent(network, 30, 0.01, 0.1, precision=precision)(task))
