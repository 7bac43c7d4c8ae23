"""Posteriors of several agents' observations against dense solves."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from coband.simulator.arms import ArmSet
from coband.simulator.maths.kernels.library import Gaussian, Linear, Matern
from coband.simulator.maths.kernels.mean_embeddings import PairMeans, similarities
from coband.simulator.maths.kernels.multitask import augmented
from coband.simulator.maths.posteriors.counts import Factors, RepeatsPosterior
from coband.simulator.maths.posteriors.group_log import CanonicalPosterior
from coband.simulator.maths.posteriors.growing_nystrom import GrowingNystrom
from coband.simulator.maths.posteriors.linear_features import PrimalKnowledge, PrimalPosterior
from coband.simulator.maths.posteriors.linear_tasks import TasksInCommon, TaskwisePosterior
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.protocol import learn, scores
from coband.simulator.maths.posteriors.shared_log import SharedLog
from tests.every import every
from tests.oracles.coop_kernel_ucb import mmd_squared
from tests.oracles.posterior import exact, log_det

LAM = 0.7


def data(seed: int, n: int, agents: int = 4) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(seed)
    contexts = rng.uniform(-1, 1, (agents, 2))
    return contexts, rng.integers(agents, size=n), rng.uniform(-1, 1, (n, 3)), rng.standard_normal(n)


@pytest.mark.parametrize("seed", range(10))
def test_any_order_of_news_gives_the_exact_posterior(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kernel, members = Gaussian(gamma=0.8), (1, 4, 5)
    observations = {(t, v): (rng.uniform(-1, 1, 3), float(rng.standard_normal())) for t in range(1, 8) for v in members}
    log, X = SharedLog(kernel, LAM), rng.uniform(-1, 1, (4, 3))
    arms = ArmSet(X)
    for _ in range(3):
        posterior = CanonicalPosterior(log, members)
        order, known = list(observations), []
        rng.shuffle(order)
        while order:
            batch, order = sorted(order[:4]), order[4:]
            points, rewards = map(np.array, zip(*(observations[key] for key in batch), strict=True))
            posterior.update(Observations(points, rewards, keys=batch))
            known += batch
            mean, variance = posterior.predict(arms)
            expected, deviation = exact(X, [observations[key] for key in known], kernel, LAM)
            assert mean == pytest.approx(expected, abs=1e-9)
            assert np.sqrt(variance) == pytest.approx(deviation, abs=1e-7)


@every("bias", [0.0, 0.4])
@every("add_up", [False, True])
@every("network", [None, Gaussian(gamma=0.5), Linear(), Linear(bias=1.0)])
def test_primal_is_the_kernel_form(network: Any, add_up: bool, bias: float) -> None:
    contexts, of, X, y = data(1, 30)
    kernel = Linear(variance=1.3, bias=bias)
    own = contexts[0] if network else np.empty(0)
    posterior = PrimalPosterior(PrimalKnowledge(kernel, network, 3, LAM, add_up), own)
    together = augmented(kernel, network, 2 if network else 0, 3, "sum" if add_up else "product")
    tasks = contexts[of] if network else np.empty((30, 0))
    points = together.points(tasks, X)
    for start in range(0, 30, 7):
        rows = slice(start, start + 7)
        posterior.update(Observations(X[rows], y[rows], tasks=tasks[rows]))
        known = [(points[i], float(y[i])) for i in range(min(30, start + 7))]
        expected, deviation = exact(points, known, together.kernel, LAM)
        for agent in range(len(contexts)):
            asked = of == agent
            mean, variance = posterior.copied(contexts[agent] if network else own).predict(X[asked])
            assert mean == pytest.approx(expected[asked], abs=1e-6)
            assert np.sqrt(variance) == pytest.approx(deviation[asked], abs=1e-5)
    sign, log_det = np.linalg.slogdet(np.eye(30) + together.kernel(points, points) / LAM)
    assert posterior.log_det == pytest.approx(sign * log_det, abs=1e-6)


@pytest.mark.parametrize("network", [None, Gaussian(gamma=0.5)])
def test_agents_that_share_a_ridge_regression_know_what_each_has_learnt(network: Any) -> None:
    """Three agents learn alike, then one of them something else, and so on; each knows its own news and no others."""
    contexts, of, X, y = data(5, 40)
    tasks = contexts[of] if network else np.empty((40, 0))
    own = contexts if network else np.empty((4, 0))
    first = PrimalPosterior(PrimalKnowledge(Linear(), network, 3, LAM, False), own[0])
    shared = [first, first.copied(own[1]), first.copied(own[2])]
    alone = [PrimalPosterior(PrimalKnowledge(Linear(), network, 3, LAM, False), own[n]) for n in range(3)]
    batches = [Observations(X[i : i + 4], y[i : i + 4], tasks=tasks[i : i + 4]) for i in range(0, 40, 4)]
    plan = [(0, 0, 0), (1, 1, 1), (2, 3, 2), (4, 4, 4), (5, 5, 6), (7, 7, 7), (None, 8, None)]
    sizes = []
    for numbers in plan:
        news = [(agent, batches[n]) for agent, n in enumerate(numbers) if n is not None]
        learn([(shared[agent], batch) for agent, batch in news])
        for agent, batch in news:
            alone[agent].update(batch)
        sizes.append(len({posterior.known_alike for posterior in shared}))
        sets = [ArmSet(X[agent : agent + 5]) for agent in range(3)]
        found = scores(shared, sets, np.array([0.5, 1.0, 2.0])).reshape(3, 5)
        for agent, posterior in enumerate(alone):
            assert found[agent] == pytest.approx(posterior.scores(sets[agent], [0.5, 1.0, 2.0][agent]), abs=1e-9)
            assert shared[agent].log_det == pytest.approx(posterior.log_det)
    assert sizes == [1, 1, 2, 2, 3, 3, 3]


def test_nystrom_is_exact_while_the_dictionary_grows_and_close_after() -> None:
    """Error against the exact posterior on a small instance: 150 points, 60 of them in the dictionary."""
    contexts, of, X, y = data(2, 150)
    together = augmented(Gaussian(gamma=0.2), Gaussian(gamma=0.2), 2, 3)
    points = together.points(contexts[of], X)
    posterior = GrowingNystrom(together.kernel, LAM, 60)
    at = points[140:]
    assert posterior.predict(at)[1] == pytest.approx(np.full(10, 1 / LAM))
    for start in range(0, 150, 15):
        posterior.update(Observations(points[start : start + 15], y[start : start + 15]))
        known = [(p, float(r)) for p, r in zip(points[: start + 15], y, strict=False)]
        mean, variance = posterior.predict(at)
        expected, deviation = exact(at, known, together.kernel, LAM)
        tolerance = 1e-5 if start < 60 else 0.02
        assert mean == pytest.approx(expected, abs=tolerance)
        assert np.sqrt(variance) == pytest.approx(deviation, abs=tolerance)


def test_two_gaussians_are_one() -> None:
    contexts, of, X, _ = data(3, 12)
    one = augmented(Gaussian(gamma=0.9), Gaussian(length_scale=0.6), 2, 3)
    assert isinstance(one.kernel, Gaussian)
    K_x, K_z = Gaussian(gamma=0.9)(X, X), Gaussian(length_scale=0.6)(contexts[of], contexts[of])
    P = one.points(contexts[of], X)
    assert one.kernel(P, P) == pytest.approx(K_x * K_z, abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_counts_and_sums_of_few_points_give_the_exact_posterior(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kernel, few = Matern(nu=1.5, length_scale=0.8), rng.uniform(-1, 1, (int(rng.integers(1, 7)), 3))
    points, y, X = few[rng.integers(len(few), size=60)], rng.standard_normal(60), rng.uniform(-1, 1, (4, 3))
    factors = Factors()
    posteriors = [RepeatsPosterior(kernel, LAM, factors), RepeatsPosterior(kernel, LAM, factors)]
    assert posteriors[0].log_det == 0.0
    assert posteriors[0].predict(X)[1] == pytest.approx(np.full(4, 1 / LAM))
    for start, end in ((0, 1), (1, 9), (9, 60)):
        known = [(points[i], float(y[i])) for i in range(end)]
        expected, deviation = exact(X, known, kernel, LAM)
        for posterior in posteriors:
            posterior.update(Observations(points[start:end], y[start:end]))
            mean, variance = posterior.predict(X)
            assert mean == pytest.approx(expected, abs=1e-9)
            assert np.sqrt(variance) == pytest.approx(deviation, abs=1e-7)
            assert posterior.log_det == pytest.approx(log_det(known, kernel, LAM), abs=1e-9)
            assert posterior.distinct == len({point.tobytes() for point in points[:end]})


def test_posteriors_that_know_different_rewards_share_nothing() -> None:
    kernel, factors, point = Gaussian(gamma=1.0), Factors(), np.zeros((1, 2))
    means = []
    for reward in (1.0, -1.0):
        posterior = RepeatsPosterior(kernel, 1.0, factors)
        posterior.update(Observations(point, np.array([reward])))
        means.append(posterior.predict(point)[0][0])
    assert means == pytest.approx([0.5, -0.5])


@every("lam", [1.0, 1e-3])
@every("missing", [0, 1, 4, 6])
@every("bias", [0.0, 0.4])
def test_task_by_task_is_the_kernel_form(bias: float, missing: int, lam: float) -> None:
    """Seven agents of whom the last one asks: it knows all but the first few others, whose data the common part has."""
    agents, trials, kernel = 7, 6, Linear(variance=1.3, bias=bias)
    rng = np.random.default_rng(missing)
    contexts, arms = rng.uniform(-1, 1, (agents, 2)), rng.uniform(-1, 1, (trials, agents, 3))
    rewards, X = rng.standard_normal((trials, agents)), rng.uniform(-1, 1, (4, 3))
    table = Gaussian(gamma=0.6)(contexts, contexts)
    common = TasksInCommon(agents, 3 + (bias > 0), lam)
    together = TaskwisePosterior(kernel, None, 3, lam, agents, 6, contexts[6], common)
    alone = TaskwisePosterior(kernel, None, 3, lam, agents, 6, contexts[6], None)
    others = TaskwisePosterior(kernel, None, 3, lam, agents, 0, contexts[0], common)
    knows = np.arange(missing, agents)
    joined = augmented(kernel, Gaussian(gamma=0.6), 2, 3)

    def points(of: NDArray[Any], at: NDArray[Any]) -> NDArray[Any]:
        return joined.points(contexts[of], at)

    for posterior in (together, alone, others):
        posterior.follow(table)
    known: list[Any] = []
    for trial in range(trials):
        for posterior, of in ((together, knows), (alone, knows), (others, np.arange(agents))):
            keys = [(trial + 1, agent) for agent in of.tolist()]
            posterior.update(Observations(arms[trial, of], rewards[trial, of], keys=keys))
        known += list(zip(points(knows, arms[trial, knows]), rewards[trial, knows].tolist(), strict=True))
        expected, deviation = exact(points(np.full(4, 6), X), known, joined.kernel, lam)
        for posterior in (together, alone):
            mean, variance = posterior.predict(X)
            assert mean == pytest.approx(expected, abs=1e-7)
            assert np.sqrt(variance) == pytest.approx(deviation, abs=1e-6)


def test_tasks_in_common_tell_nothing_to_who_knows_less_or_else() -> None:
    """The asking agent has missed a trial, or believes in another K_z: it goes by what it knows itself."""
    rng, numbers = np.random.default_rng(5), np.arange(4)
    X, y = rng.uniform(-1, 1, (3, 4, 2)), rng.standard_normal((3, 4))
    table = np.exp(-np.abs(numbers[:, None] - numbers) / 2.0)
    trials = [Observations(X[t], y[t], keys=[(t + 1, agent) for agent in range(4)]) for t in range(3)]
    common = TasksInCommon(4, 2, LAM)
    everything = TaskwisePosterior(Linear(), None, 2, LAM, 4, 0, np.empty(0), common)
    everything.follow(table)
    for gap, believed in ((True, table), (False, np.eye(4))):
        one, other = (TaskwisePosterior(Linear(), None, 2, LAM, 4, 1, np.empty(0), shared) for shared in (common, None))
        for posterior in (one, other):
            posterior.follow(believed)
            for trial in (1, 3) if gap else (1, 2, 3):
                posterior.update(trials[trial - 1])
        for trial in trials:
            everything.update(trial)
        everything.follow(table)
        assert not common.holds(numbers, one._counts, one._table)
        for found, expected in zip(one.predict(X[0]), other.predict(X[0]), strict=True):
            assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("kernel", [Linear(variance=0.7, bias=0.2), Gaussian(gamma=0.8)])
def test_similarities_are_those_of_all_pairs_of_arms(kernel: Any, power: int) -> None:
    """Agents of whom unequal numbers of trials are known, some with gaps; whoever else has asked before."""
    rng, means = np.random.default_rng(8), PairMeans(kernel, 7)
    arms = rng.uniform(-1, 1, (7, 9, 2))
    knows: list[dict[int, tuple[int, ...]]] = [
        {0: (1, 2, 3), 2: (1, 2, 3), 5: (1, 2)},
        {0: (1, 2, 3), 1: (1, 3), 2: (1, 2, 3, 4), 5: (1, 2), 6: (2,)},
        {5: (1, 2, 3), 1: (1, 2, 3), 2: (1, 2, 3)},
    ]
    for known in knows * 2:
        seen = {agent: (trials, arms[agent, np.array(trials) - 1]) for agent, trials in known.items()}
        table = similarities(means, seen, 7, 0.9, power)
        for one in range(7):
            for other in range(7):
                expected = float(one == other)
                if one != other and one in seen and other in seen:
                    squared = mmd_squared(kernel, seen[one][1], seen[other][1])
                    expected = np.exp(-(squared ** (power / 2)) / (2 * 0.9**2))
                assert table[one, other] == pytest.approx(expected, abs=1e-7)


def test_a_small_lam_gives_the_same_beside_other_agents_as_alone() -> None:
    """Tasks that are nearly the same: an inverse of all tasks' B would be wrong by a third of the variance."""
    rng, agents = np.random.default_rng(0), 6
    contexts, X, y = rng.uniform(-1, 1, (agents, 2)), rng.uniform(-1, 1, (300, 3)), rng.standard_normal(300)
    kernel, network, numbers = Linear(2.0, 1.0), Gaussian(length_scale=100.0), np.arange(300) % agents
    found = []
    for common in (None, TasksInCommon(agents, 4, 1e-6)):
        posterior = TaskwisePosterior(kernel, network, 3, 1e-6, agents, 0, contexts[0], common)
        keys = [(place // agents + 1, place % agents) for place in range(300)]
        posterior.update(Observations(X, y, tasks=contexts[numbers], keys=keys))
        found.append(posterior.predict(X[:7]))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)
