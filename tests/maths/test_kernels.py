"""Kernels: fast matrices equal the formulas taken pair by pair; configurations are validated by pydantic."""

import math
from typing import Any

import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coband.extensions.conformance.graphs import run_anywhere
from coband.extensions.conformance.runs import batches, registry
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.base import KernelSpec
from coband.simulator.maths.kernels.library import Gaussian, Kernel, Linear, Matern, Polynomial, Product, Sum
from coband.simulator.maths.kernels.registry import KERNELS, AnyKernel
from coband.simulator.scenario_errors import BrokenOff
from tests.every import every

OURS = ("gaussian", "linear", "matern", "polynomial", "product", "sum")
ADAPTER: pydantic.TypeAdapter[KernelSpec] = pydantic.TypeAdapter(AnyKernel)

EVERY_KERNEL: list[KernelSpec] = [
    Gaussian(gamma=0.3),
    Gaussian(length_scale=1.7),
    Matern(nu=0.5, length_scale=0.8),
    Matern(nu=1.5, length_scale=1.3),
    Matern(nu=2.5),
    Linear(variance=0.7, bias=0.2),
    Polynomial(degree=3, scale=0.5, bias=1.0),
    Product((Gaussian(gamma=0.2, columns=(0,)), Matern(nu=1.5, columns=(0,)))),
    Sum((Linear(), Product((Gaussian(gamma=1.0), Polynomial())))),
]


def plain(kernel: Any, x: FloatArray, y: FloatArray) -> float:
    """k(x, y) of two points straight from the definition."""
    if isinstance(kernel, Product):
        return math.prod(plain(factor, x, y) for factor in kernel.factors)
    if isinstance(kernel, Sum):
        return sum(plain(term, x, y) for term in kernel.terms)
    if kernel.columns is not None:
        x, y = x[list(kernel.columns)], y[list(kernel.columns)]
    if isinstance(kernel, Gaussian):
        gamma = kernel.gamma or 1.0 / (2.0 * (kernel.length_scale or 0.0) ** 2)
        return math.exp(-gamma * sum((x - y) ** 2))
    if isinstance(kernel, Matern):
        s = math.sqrt(2.0 * kernel.nu) * math.dist(x, y) / kernel.length_scale
        return {0.5: 1.0, 1.5: 1.0 + s, 2.5: 1.0 + s + s * s / 3.0}[kernel.nu] * math.exp(-s)
    if isinstance(kernel, Linear):
        return kernel.variance * float(sum(x * y)) + kernel.bias
    return float((kernel.scale * sum(x * y) + kernel.bias) ** kernel.degree)


def plain_matrix(kernel: KernelSpec, X: FloatArray, Y: FloatArray) -> FloatArray:
    return np.array([[plain(kernel, x, y) for y in Y] for x in X]).reshape(len(X), len(Y))


@every("kernel", EVERY_KERNEL, ids=repr)
@every("d", [1, 2, 20])
def test_matrices_equal_the_definition(kernel: Kernel, d: int) -> None:
    rng = np.random.default_rng(d)
    X, Y = rng.normal(size=(7, d)), rng.normal(size=(11, d))
    Y[3] = X[2]
    Y[4] = X[2] + 1e-7
    expected = plain_matrix(kernel, X, Y)  # type: ignore[arg-type]
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel.against(Y).evaluate(X), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel.diag(X), [plain(kernel, x, x) for x in X], rtol=1e-13)


@pytest.mark.parametrize("kernel", EVERY_KERNEL, ids=repr)
def test_gram_matrices_are_symmetric_and_positive_semidefinite(kernel: Kernel) -> None:
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[7] = X[31]
    K = kernel(X, X)
    assert np.array_equal(K, K.T)
    assert np.array_equal(np.diagonal(K), kernel.diag(X))
    assert np.linalg.eigvalsh(K).min() >= -1e-12 * np.linalg.eigvalsh(K).max()


@every("kernel", EVERY_KERNEL[:5], ids=repr)
@every("offset", [0.0, 1e3, 1e6])
def test_stationary_kernels_do_not_mind_where_the_origin_is(kernel: Kernel, offset: float) -> None:
    X = np.round(np.random.default_rng(1).normal(size=(6, 4)) * 1024.0) / 1024.0
    Y = X[::-1] + 0.125
    np.testing.assert_allclose(kernel(X + offset, Y + offset), kernel(X, Y), atol=1e-8)
    assert np.array_equal(kernel.diag(X + offset), np.ones(6))


def test_a_matern_of_equal_points_is_exactly_one() -> None:
    X = np.random.default_rng(2).normal(size=(5, 6)) * 100.0
    assert np.array_equal(np.diagonal(Matern(nu=0.5).against(X.copy()).evaluate(X)), np.ones(5))


@every("arms", [1, 5, 64])
@every(
    "kernel", [Gaussian(gamma=0.5), Gaussian(gamma=900.0), Matern(nu=0.5), Linear(), Product((Matern(), Polynomial()))]
)
def test_a_matrix_in_a_stack_has_the_bits_that_it_has_alone(kernel: Kernel, arms: int) -> None:
    rng = np.random.default_rng(arms)
    stack, Y = rng.standard_normal((6, arms, 3)), rng.standard_normal((29, 3))
    bound = kernel.against(Y)
    np.testing.assert_array_equal(bound.evaluate(stack), [bound.evaluate(X) for X in stack])


def test_columns_restrict_a_kernel_to_coordinates() -> None:
    X = np.random.default_rng(3).normal(size=(5, 4))
    kernel = Product((Gaussian(gamma=0.5, columns=(0, 1)), Linear(columns=(2, 3))))
    expected = Gaussian(gamma=0.5)(X[:, :2], X[:, :2]) * Linear()(X[:, 2:], X[:, 2:])
    np.testing.assert_allclose(kernel(X, X), expected, rtol=1e-14)


def test_columns_beyond_the_dimension_are_refused() -> None:
    with pytest.raises(ValueError, match=r"columns=\(0, 5\) must be below the dimension of the points, 2"):
        Gaussian(gamma=1.0, columns=(0, 5))(np.zeros((1, 2)), np.zeros((1, 2)))


@given(
    sizes=st.lists(st.integers(0, 20), min_size=1, max_size=5),
    kernel=st.sampled_from(EVERY_KERNEL),
    seed=st.integers(0, 9),
)
def test_bound_kernels_append_and_shorten_without_disturbing_their_snapshots(
    sizes: list[int], kernel: KernelSpec, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4, 2))
    Y = rng.normal(size=(sum(sizes), 2))
    snapshots = [kernel.against(Y[:0])]
    for end in np.cumsum(sizes):
        snapshots.append(snapshots[-1].appended(Y[snapshots[-1].size : end]))
    branch = snapshots[0].appended(X)  # a second continuation of an old snapshot must leave the first alone
    for snapshot in snapshots:
        np.testing.assert_allclose(snapshot.evaluate(X), kernel(X, Y[: snapshot.size]), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(snapshots[-1].leading(snapshot.size).evaluate(X), snapshot.evaluate(X), rtol=1e-12)
    np.testing.assert_allclose(branch.evaluate(X), kernel(X, X.copy()), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Gaussian(), r"exactly one of gamma\(=None\) and length_scale\(=None\)"),
        (lambda: Gaussian(gamma=1.0, length_scale=2.0), r"exactly one of gamma\(=1.0\) and length_scale\(=2.0\)"),
        (lambda: Gaussian(gamma=-1.0), r"gamma\(=-1.0\) must be > 0"),
        (lambda: Matern(nu=1.0), r"nu\(=1.0\) must be one of 0.5, 1.5, 2.5"),
        (lambda: Matern(length_scale=0.0), r"length_scale\(=0.0\) must be > 0"),
        (lambda: Linear(bias=-0.5), r"bias\(=-0.5\) must be >= 0"),
        (lambda: Polynomial(degree=0), r"degree\(=0\) must be an integer >= 1"),
        (lambda: Product(()), r"factors\(=\(\)\) must hold at least one kernel"),
        (lambda: Sum(()), r"terms\(=\(\)\) must hold at least one kernel"),
        (lambda: Linear(columns=()), r"columns\(=\(\)\) must name at least one coordinate"),
    ],
)
def test_impossible_parameters_are_refused_with_their_values(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("kernel", EVERY_KERNEL, ids=repr)
def test_every_kernel_survives_the_way_through_json(kernel: KernelSpec) -> None:
    assert ADAPTER.validate_json(ADAPTER.dump_json(kernel)) == kernel
    assert isinstance(kernel, tuple(KERNELS.values()))


def test_a_nested_configuration_is_read() -> None:
    factors = [{"kind": "gaussian", "gamma": 0.1, "columns": [0, 1]}, {"kind": "gaussian", "length_scale": 2}]
    assert ADAPTER.validate_python({"kind": "product", "factors": factors}) == Product(
        (Gaussian(gamma=0.1, columns=(0, 1)), Gaussian(length_scale=2.0))
    )
    assert ADAPTER.validate_python({"kind": "gaussian", "gamma": 0.1}) == Gaussian(gamma=0.1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "gaussian", "gamma": -1.0}, "gaussian.gamma\n  Input should be greater than 0"),
        ({"kind": "gaussian", "gamma": math.inf}, "gaussian.gamma\n  Input should be a finite number"),
        ({"kind": "gaussian", "gamma": 1.0, "sigma": 2.0}, "gaussian.sigma\n  Unexpected keyword argument"),
        ({"kind": "gaussian"}, "exactly one of gamma(=None) and length_scale(=None) must be given"),
        ({"kind": "matern", "nu": 2}, "nu(=2.0) must be one of 0.5, 1.5, 2.5"),
        ({"kind": "product", "factors": []}, "factors(=()) must hold at least one kernel"),
        ({"kind": "sum", "terms": [{"kind": "linear", "bias": -1}]}, "sum.terms.0.linear.bias\n  Input should be"),
        ({"kind": "cubic"}, "tagged-union[Gaussian,Linear,Matern,Polynomial,Product,Sum,"),
    ],
)
def test_bad_configurations_are_refused_by_name_and_only_once(given: dict[str, Any], message: str) -> None:
    with pytest.raises(pydantic.ValidationError) as refusal:
        ADAPTER.validate_python(given)
    assert message in str(refusal.value)
    assert refusal.value.error_count() == 1


def test_a_json_schema_tells_the_kernels_apart() -> None:
    schema = ADAPTER.json_schema()
    assert set(schema["discriminator"]["mapping"]) == set(KERNELS) == set(OURS)
    assert schema["$defs"]["Gaussian"]["properties"]["gamma"]["anyOf"][0] == {"exclusiveMinimum": 0, "type": "number"}


KERNELLED = sorted(name for name, entry in registry().algorithms.items() if "kernel" in entry.config.model_fields)


@every("name", KERNELLED)
def test_every_algorithm_says_that_a_kernel_is_too_large_to_compute_with(name: str) -> None:
    config = {**registry().algorithms[name].always, "kernel": {"kind": "polynomial", "degree": 1000}}
    config |= {"horizon": 5} if registry().algorithms[name].needs.horizon else {}
    schedule = None if batches(name) else {"kind": "rounds", "turns": 5}
    with pytest.raises(BrokenOff, match="degree 1000 its values are too large to compute with"):
        run_anywhere(name, config, schedule=schedule)
