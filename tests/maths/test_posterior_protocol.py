"""Every posterior keeps what ``Posterior`` promises, and says what its plain definition says."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from coband.simulator.arms import ArmSet, Points
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.library import Gaussian, Linear
from coband.simulator.maths.kernels.multitask import augmented
from coband.simulator.maths.linalg.gram import Gram
from coband.simulator.maths.linalg.matrices import NotDefiniteError
from coband.simulator.maths.posteriors import choose
from coband.simulator.maths.posteriors.choose_multitask import AugmentedPosterior
from coband.simulator.maths.posteriors.counts import RepeatsPosterior
from coband.simulator.maths.posteriors.dictionary import Dictionary, Statistics
from coband.simulator.maths.posteriors.finite_domain import Domain, DomainLog, DomainPosterior
from coband.simulator.maths.posteriors.group_log import CanonicalPosterior
from coband.simulator.maths.posteriors.growing_nystrom import GrowingNystrom
from coband.simulator.maths.posteriors.linear_features import PrimalKnowledge, PrimalPosterior
from coband.simulator.maths.posteriors.linear_tasks import TasksInCommon, TaskwisePosterior
from coband.simulator.maths.posteriors.nystrom import NystromModel, NystromPosterior
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.protocol import Posterior
from coband.simulator.maths.posteriors.ridge import Ridge, RidgeRegression
from coband.simulator.maths.posteriors.shared_log import ExactPosterior, SharedLog
from coband.simulator.maths.posteriors.synchronised_ridge import LocalRidge, SynchronisedRidge
from tests.every import every
from tests.oracles import posterior as oracle
from tests.oracles.nystrom_choice import dictionary
from tests.oracles.turns import gaussian, linear

LAM = 0.6
N = 15
"""Observations: three tasks at five trials."""
BASE = 6
"""More of them, which some posteriors have been given another way: by a log, a model, a synchronisation."""
RNG = np.random.default_rng(17)
X = RNG.uniform(-1.0, 1.0, (N + BASE, 3))
X[7], X[N] = X[2], X[1]  # repeated points
Y = RNG.standard_normal(N + BASE)
ARMS = ArmSet(np.vstack([RNG.uniform(-1.0, 1.0, (5, 3)), X[2]]))
DOMAIN = ArmSet.fixed(np.vstack([X, RNG.uniform(-1.0, 1.0, (4, 3))]))
CONTEXTS = np.array([[0.3, -0.5], [0.9, 0.1], [-0.4, -0.2]])
KEYS = [(row // 3 + 1, row % 3) for row in range(N + BASE)]
TASKS = CONTEXTS[[agent for _, agent in KEYS]]
KERNEL = Gaussian(gamma=0.7)
SPAN = [0, 3, 8, 11]
"""Rows of the points of a dictionary."""
OWN = 1

Said = tuple[FloatArray, FloatArray, float]
"""Mean, variance and log det."""
Plain = Callable[[Sequence[int]], Said]
"""What the plain definition says of the arms, given the rows that an agent knows."""


@dataclass(frozen=True)
class Subject:
    """A posterior under test.

    Attributes:
        make: a posterior with no observations but those of ``base``.
        plain: its definition, in plain loops.
        arms: what it is asked about.
        base: rows that it knows from the start.
        ordered: among so many first rows its dictionary is chosen, and their order matters.
        domain: its observations are arms of ``DOMAIN``.
    """

    make: Callable[[], Posterior]
    plain: Plain
    arms: Points = field(default_factory=lambda: ARMS)
    base: tuple[int, ...] = ()
    ordered: int = 0
    domain: bool = False

    def given(self, rows: Sequence[int]) -> Observations:
        """These rows as observations."""
        chosen = np.array(rows, dtype=np.intp)
        points: Points = DOMAIN.select(chosen) if self.domain else X[chosen]
        return Observations(points, Y[chosen], tasks=TASKS[chosen], keys=[KEYS[row] for row in rows])

    def learnt(self, *parts: Sequence[int]) -> Posterior:
        """A posterior that was given these rows."""
        posterior = self.make()
        for part in parts:
            posterior.update(self.given(part))
        return posterior

    def expected(self, rows: Sequence[int]) -> Said:
        return self.plain([*self.base, *rows])


def exactly(kernel: oracle.Kernel, points: FloatArray, at: FloatArray) -> Plain:
    """Li et al. 2023, eq. 1, with one solve."""

    def plain(rows: Sequence[int]) -> Said:
        data = [(points[row], float(Y[row])) for row in rows]
        mean, deviation = oracle.exact(at, data, kernel, LAM)
        return mean, deviation**2, oracle.log_det(data, kernel, LAM)

    return plain


def embedded(span: Callable[[Sequence[int]], Sequence[int]], at: FloatArray) -> Plain:
    """Li et al. 2023, eq. 2, with the eigen-root of a dictionary."""

    def plain(rows: Sequence[int]) -> Said:
        dictionary = oracle.Dictionary([X[row] for row in span(rows)], gaussian(0.7))
        model = oracle.statistics([(X[row], float(Y[row])) for row in rows], dictionary)
        mean, deviation = oracle.nystroem(at, model, LAM)
        return mean, deviation**2, float(np.linalg.slogdet(np.eye(len(dictionary)) + model.A / LAM)[1])

    return plain


def chosen_of_first(rows: Sequence[int]) -> list[int]:
    """The rows in a dictionary of four places."""
    return [rows[i] for i in dictionary(gaussian(0.7), [X[row] for row in rows], [1.0] * len(rows), 4)]


def diagonal(rows: Sequence[int]) -> Said:
    """Ridge regression that knows the diagonal of V alone."""
    V, b = np.full(3, LAM), np.zeros(3)
    for row in rows:
        for j in range(3):
            V[j] += X[row, j] ** 2
            b[j] += Y[row] * X[row, j]
    mean = [sum(x[j] * b[j] / V[j] for j in range(3)) for x in ARMS.features]
    variance = [sum(x[j] ** 2 / V[j] for j in range(3)) for x in ARMS.features]
    return np.array(mean), np.array(variance), float(sum(np.log(V[j] / LAM) for j in range(3)))


def of_tasks(of_arms: oracle.Kernel, add_up: bool = False) -> Plain:
    """Eq. 1 with K_z K_x, or K_z + K_x, of points [z | x]."""

    def kernel(P: FloatArray, Q: FloatArray) -> FloatArray:
        K_z, K_x = gaussian(0.4)(P[:, :2], Q[:, :2]), of_arms(P[:, 2:], Q[:, 2:])
        return K_z + K_x if add_up else K_z * K_x

    at = np.hstack([np.repeat(CONTEXTS[OWN][None], len(ARMS), axis=0), ARMS.features])
    return exactly(kernel, np.hstack([TASKS, X]), at)


EXACT = exactly(gaussian(0.7), X, ARMS.features)
ON_DOMAIN = exactly(gaussian(0.7), X, DOMAIN.features)
LINEAR = exactly(linear, X, ARMS.features)
FIRST = tuple(range(N, N + BASE))
NETWORK = Gaussian(gamma=0.4)


def logged(log: SharedLog | DomainLog, known: int) -> Posterior:
    """On a log of the base rows, of which ``known`` are known."""
    log.extend(0, Observations(X[list(FIRST)], Y[list(FIRST)]))
    posterior = log.posterior()
    posterior.adopt(known, 0)
    return posterior


def model(base: Sequence[int]) -> NystromModel:
    dictionary = Dictionary(KERNEL).appended(X[SPAN])
    return NystromModel.fit(dictionary, Statistics.of(dictionary.embed(X[list(base)]), Y[list(base)]), LAM)


def synchronised(ridge: Ridge, base: Sequence[int]) -> LocalRidge:
    shared, G = SynchronisedRidge(ridge), X[list(base)]
    W = Gram(G)
    shared.follow(1, W if isinstance(ridge, RidgeRegression) else W.diagonal, G.T @ Y[list(base)])
    return LocalRidge(shared)


def taskwise(network: Gaussian | None, common: TasksInCommon | None) -> TaskwisePosterior:
    posterior = TaskwisePosterior(Linear(), network, 3, LAM, 3, OWN, CONTEXTS[OWN], common)
    if network is None:
        posterior.follow(NETWORK(CONTEXTS, CONTEXTS))
    return posterior


def grown_ridge() -> RidgeRegression:
    """One whose last feature was added later, as those of new tasks are."""
    ridge = RidgeRegression(2, LAM, cadence=4)
    ridge.grow(3)
    return ridge


SUBJECTS = {
    "exact": Subject(lambda: ExactPosterior(KERNEL, LAM), EXACT),
    "domain": Subject(lambda: DomainPosterior(Domain(KERNEL, DOMAIN), LAM), ON_DOMAIN, DOMAIN, domain=True),
    "log": Subject(lambda: logged(SharedLog(KERNEL, LAM), 0), EXACT),
    "log prefix": Subject(lambda: logged(SharedLog(KERNEL, LAM), 4), EXACT, base=FIRST[:4]),
    "domain log": Subject(
        lambda: logged(DomainLog(Domain(KERNEL, DOMAIN), LAM), 4), ON_DOMAIN, DOMAIN, FIRST[:4], domain=True
    ),
    "counts": Subject(lambda: RepeatsPosterior(KERNEL, LAM), EXACT),
    "canonical": Subject(lambda: CanonicalPosterior(SharedLog(KERNEL, LAM), (0, 1, 2)), EXACT),
    "growing nystrom": Subject(
        lambda: GrowingNystrom(KERNEL, LAM, 4), embedded(chosen_of_first, ARMS.features), ordered=8
    ),
    "growing nystrom, not full": Subject(lambda: GrowingNystrom(KERNEL, LAM, 40), EXACT),
    "nystrom": Subject(lambda: NystromPosterior(model(())), embedded(lambda _: SPAN, ARMS.features)),
    "nystrom on data": Subject(
        lambda: NystromPosterior(model(FIRST)), embedded(lambda _: SPAN, ARMS.features), base=FIRST
    ),
    "domain nystrom": Subject(
        lambda: NystromPosterior(model(FIRST), Domain(KERNEL, DOMAIN)),
        embedded(lambda _: SPAN, DOMAIN.features),
        DOMAIN,
        FIRST,
        domain=True,
    ),
    "ridge": Subject(lambda: choose.ridge(3, LAM, False), LINEAR),
    "ridge, factored often": Subject(lambda: RidgeRegression(3, LAM, cadence=4), LINEAR),
    "ridge, grown": Subject(grown_ridge, LINEAR),
    "diagonal ridge": Subject(lambda: choose.ridge(3, LAM, diagonal=True), diagonal),
    "local ridge": Subject(lambda: synchronised(choose.ridge(3, LAM, False), FIRST), LINEAR, base=FIRST),
    "diagonal local ridge": Subject(
        lambda: synchronised(choose.ridge(3, LAM, diagonal=True), FIRST), diagonal, base=FIRST
    ),
    "primal": Subject(
        lambda: PrimalPosterior(PrimalKnowledge(Linear(), NETWORK, 3, LAM, False), CONTEXTS[OWN]), of_tasks(linear)
    ),
    "primal sum": Subject(
        lambda: PrimalPosterior(PrimalKnowledge(Linear(), NETWORK, 3, LAM, True), CONTEXTS[OWN]),
        of_tasks(linear, add_up=True),
    ),
    "taskwise": Subject(lambda: taskwise(NETWORK, None), of_tasks(linear)),
    "taskwise, table": Subject(lambda: taskwise(None, None), of_tasks(linear)),
    "taskwise, common": Subject(lambda: taskwise(NETWORK, TasksInCommon(3, 3, LAM)), of_tasks(linear)),
    "augmented": Subject(
        lambda: AugmentedPosterior(
            kernel := augmented(KERNEL, NETWORK, 2, 3), CONTEXTS[OWN], ExactPosterior(kernel.kernel, LAM)
        ),
        of_tasks(gaussian(0.7)),
    ),
}

subjects = every("subject", SUBJECTS.values(), ids=SUBJECTS)


def said(posterior: Posterior, arms: Points) -> Said:
    return *posterior.predict(arms), posterior.log_det


def assert_same(found: Said, expected: Said) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, abs=1e-8)


def kinds(base: type[Posterior]) -> Iterator[type[Posterior]]:
    """All classes of posteriors that can be made."""
    for kind in base.__subclasses__():
        if not inspect.isabstract(kind) and kind.__module__.startswith("coband."):
            yield kind
        yield from kinds(kind)


def test_every_posterior_is_among_the_subjects() -> None:
    assert {type(subject.make()) for subject in SUBJECTS.values()} == set(kinds(Posterior))


@subjects
@every("known", [0, 1, 5, N])
def test_it_says_what_the_plain_definition_says(subject: Subject, known: int) -> None:
    rows = range(known)
    assert_same(said(subject.learnt(rows), subject.arms), subject.expected(rows))


@subjects
def test_one_by_one_in_blocks_and_at_once_are_the_same(subject: Subject) -> None:
    at_once = said(subject.learnt(range(N)), subject.arms)
    assert_same(said(subject.learnt(range(2), range(2, 9), range(9, N)), subject.arms), at_once)
    one_by_one = subject.make()
    for row in range(N):
        one_by_one.update(subject.given([row]))
        assert_same(said(one_by_one, subject.arms), subject.expected(range(row + 1)))
    assert_same(said(one_by_one, subject.arms), at_once)


@subjects
@every("seed", range(3))
def test_the_order_of_observations_does_not_matter(subject: Subject, seed: int) -> None:
    rows = [*range(subject.ordered), *np.random.default_rng(seed).permutation(range(subject.ordered, N)).tolist()]
    expected = subject.expected(range(N))
    assert_same(said(subject.learnt(rows), subject.arms), expected)
    assert_same(said(subject.learnt(rows[:6], rows[6:7], rows[7:]), subject.arms), expected)


@subjects
def test_without_observations_it_is_the_prior(subject: Subject) -> None:
    posterior = subject.make()
    prior = subject.expected(())
    assert_same(said(posterior, subject.arms), prior)
    if not subject.base:
        assert not posterior.predict(subject.arms)[0].any()
        assert posterior.log_det == 0.0
    posterior.update(subject.given(()))
    assert_same(said(posterior, subject.arms), prior)


@subjects
def test_no_observations_change_nothing(subject: Subject) -> None:
    posterior = subject.learnt(range(5))
    posterior.update(subject.given(()))
    assert_same(said(posterior, subject.arms), subject.expected(range(5)))


@subjects
def test_log_det_never_falls(subject: Subject) -> None:
    posterior, values = subject.make(), []
    for row in [*range(N), *range(N)]:
        values.append(posterior.log_det)
        posterior.update(subject.given([row]))
    assert (np.diff([*values, posterior.log_det]) >= 0.0).all()
    assert isinstance(posterior.log_det, float)


@subjects
@every("known", [0, N])
def test_shapes(subject: Subject, known: int) -> None:
    """No arms, one arm, all arms; and many observations of one point leave no variance below 0."""
    posterior = subject.learnt(range(known), [2] * 40 if known else ())
    whole = subject.arms
    assert isinstance(whole, ArmSet)
    for places in (np.arange(0), np.array([1]), np.arange(len(whole))):
        mean, variance = posterior.predict(whole.select(places))
        assert mean.shape == variance.shape == (len(places),)
        assert (variance >= 0.0).all()
        assert np.isfinite(mean).all()


@subjects
def test_bare_points_are_arms_too(subject: Subject) -> None:
    posterior = subject.learnt(range(N))
    assert isinstance(subject.arms, ArmSet)
    assert_same(said(posterior, np.array(subject.arms.features)), said(posterior, subject.arms))


def test_a_ridge_that_grows_after_observations_has_them_at_zero() -> None:
    early, late = X[:6].copy(), X[6:N]
    early[:, 2] = 0.0
    for forked in (False, True):
        ridge = RidgeRegression(2, LAM, cadence=4)
        ridge.update(Observations(early[:, :2], Y[:6]))
        if forked:
            ridge = ridge.forked()
        ridge.grow(3)
        ridge.update(Observations(late, Y[6:N]))
        expected = RidgeRegression(3, LAM)
        expected.update(Observations(np.vstack([early, late]), Y[:N]))
        assert_same(said(ridge, ARMS), said(expected, ARMS))


def test_observations_need_a_reward_each() -> None:
    with pytest.raises(ValueError, match="one reward per point is needed; 3 points and 2 rewards were given"):
        Observations(X[:3], Y[:2])


@every("name", ["exact", "domain", "counts"])
def test_a_lam_below_the_rounding_of_the_kernel_is_told_of(name: str) -> None:
    """Beside values of 10^8; a mean would be infinite, or a variance nothing but rounding."""
    rng, kernel, lam = np.random.default_rng(0), Linear(), 1e-9
    X = 1e4 * rng.uniform(-1.0, 1.0, (60, 2))
    made: dict[str, Callable[[], Posterior]] = {
        "exact": lambda: ExactPosterior(kernel, lam),
        "domain": lambda: DomainPosterior(Domain(kernel, ArmSet.fixed(X)), lam),
        "counts": lambda: RepeatsPosterior(kernel, lam),
    }

    def learn_and_predict() -> None:
        posterior = made[name]()
        for _ in range(40):
            posterior.update(Observations(X, rng.standard_normal(60)))
            posterior.predict(X)

    with pytest.raises(NotDefiniteError, match=r"lam\(=1e-09\); give a larger lam, or smaller features"):
        learn_and_predict()
