"""Async-KernelUCB beyond the paper's defaults: delta transfer, interleaved exchanges, blocking, delays."""

from typing import Any

import numpy as np
import pytest

from coband.agents.kernel.async_kernel_config import AsyncConfig
from coband.agents.messages.asynchronous import Request, ServerModel, Upload
from coband.extensions.conformance import runs
from coband.extensions.conformance.runs import Run, run
from coband.simulator.arms import ArmSet
from coband.simulator.core.conversations import Declined
from coband.simulator.core.nodes.node import SERVER, UnsupportedScenario
from coband.simulator.core.nodes.outbox import Silence
from coband.simulator.core.records import trace as tr
from coband.simulator.maths.kernels.library import Gaussian
from coband.simulator.maths.posteriors.dictionary import Dictionary
from coband.simulator.maths.posteriors.nystrom import NystromModel
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.shared_log import ExactPosterior
from tests.agents.beside import assert_equal, beside
from tests.agents.test_equivalence import ORACLES, random_case
from tests.every import every
from tests.everyday import everyday

KERNEL = {"kind": "gaussian", "gamma": 0.8}
DELAYED = {"latency": {"kind": "uniform", "low": 1.0, "high": 12.0}}
SMALL: dict[str, Any] = {"kernel": KERNEL, "threshold": 0.8, "q": 1.0, "alpha": 0.5}


def by_kind(result: Run, kind: str) -> list[tr.Row]:
    return [row for row in result.events(tr.SEND) if result.names[row.kind] == kind]


@every("seed", range(2))
@every("variant", [{"transfer": "delta"}, {"server": {"exchanges": "interleaved"}}, {"blocking": True}])
def test_without_delays_variants_pull_the_same_arms(variant: dict[str, Any], seed: int) -> None:
    plain = run("async_kernel_ucb", SMALL, seed=seed, checks="cheap")
    other = run("async_kernel_ucb", {**SMALL, **variant}, seed=seed, checks="cheap")
    assert other.pulls == plain.pulls
    assert other.result.rounds == plain.result.rounds > 5
    if "transfer" not in variant:
        assert other.messages == plain.messages


@every("seed", range(2))
def test_delta_sends_only_what_the_agent_lacks(seed: int) -> None:
    """Message 2: the missing points, and statistics unless the model is the agent's own; message 4: nothing."""
    full = run("async_kernel_ucb", SMALL, seed=seed)
    delta = run("async_kernel_ucb", {**SMALL, "transfer": "delta"}, seed=seed)
    d, m = 3, 0
    known: dict[int, tuple[int, int]] = {}
    for exchange, (down, up, model) in enumerate(
        zip(by_kind(delta, "dictionary"), by_kind(delta, "upload"), by_kind(delta, "model"), strict=True)
    ):
        agent = up[3]
        size, version = known.get(agent, (0, 0))
        statistics = 0 if version == exchange else m * m + m
        assert down[8] == (m - size) * (d + 1) + statistics
        uploaded = by_kind(full, "upload")[exchange]
        assert up[8] == uploaded[8]
        # |dS|(d+1) + m'^2 + m' with m' = m + |dS|
        added = next(n for n in range(200) if n * (d + 1) + (m + n) ** 2 + (m + n) == up[8])
        m += added
        assert model.scalars == 0
        known[agent] = (m, exchange + 1)
    assert delta.result.totals["scalars"] < full.result.totals["scalars"]


def server_posterior(result: Run) -> NystromModel:
    server: Any = result.engine.server
    dictionary = Dictionary(Gaussian(gamma=0.8)).appended(server._points)
    return NystromModel.fit(dictionary, server.statistics, 1.0)


def exact_posterior(result: Run) -> ExactPosterior:
    """Of all pulls whose statistics the server has, read from the trace."""
    posterior = ExactPosterior(Gaussian(gamma=0.8), 1.0)
    world: Any = result.engine.world
    taken = {agent.context.index: agent.unshared for agent in result.engine.agents}
    for index, held in taken.items():
        pulls = [pull for pull in result.pulls if pull[0] == index]
        for agent, turn, arm, reward in pulls[: len(pulls) - held]:
            posterior.update(Observations(world.points_of(agent, turn)[arm][None], np.array([reward])))
    return posterior


class Recording:
    """Remembers the arm sets that a world has offered."""

    def __init__(self, world: Any) -> None:
        self._world, self._seen = world, {}  # type: ignore[var-annotated]
        self.dimension, self.fixed_arms = world.dimension, world.fixed_arms
        self.pull = world.pull

    def arms(self, agent: int, turn: int) -> Any:
        arms = self._seen[agent, turn] = self._world.arms(agent, turn).copy()
        return arms

    def points_of(self, agent: int, turn: int) -> Any:
        return self._seen[agent, turn]


@every("transfer", ["full", "delta"])
@every("seed, exchanges", [(0, "serial"), (1, "interleaved")])
def test_overlapping_exchanges_lose_and_double_nothing(
    seed: int, exchanges: str, transfer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every point in the dictionary the server's model is exact: it must equal that of all pulls it was sent."""
    plain_world = runs.world
    monkeypatch.setattr(runs, "world", lambda *arguments: Recording(plain_world(*arguments)))
    config = {**SMALL, "q": 1e9, "lam": 1.0, "server": {"exchanges": exchanges}, "transfer": transfer}
    result = run(
        "async_kernel_ucb", config, agents=4, seed=seed, network=DELAYED, schedule={"kind": "rounds", "turns": 25}
    )
    overlaps = sum(row.scalars > 0 for row in by_kind(result, "model")) if transfer == "delta" else None
    if exchanges == "interleaved" and transfer == "delta":
        assert overlaps
    X = np.random.default_rng(0).uniform(-0.6, 0.6, (20, 3))
    mean, variance = server_posterior(result).predict(X)
    expected_mean, expected_variance = exact_posterior(result).predict(X)
    assert mean == pytest.approx(expected_mean, abs=1e-6)
    assert np.sqrt(variance) == pytest.approx(np.sqrt(expected_variance), abs=1e-5)
    # Every agent's newest model is one that the server has had: the newest agent's equals the server's.
    newest: Any = max(result.engine.agents, key=lambda agent: agent._version)  # type: ignore[attr-defined]
    assert newest._version == result.result.rounds
    assert newest.model.predict(X)[0] == pytest.approx(mean, abs=1e-7)


@every("transfer", ["full", "delta"])
def test_an_interleaved_model_message_carries_the_points_in_between(transfer: str) -> None:
    config = {**SMALL, "server": {"exchanges": "interleaved"}, "transfer": transfer}
    result = run("async_kernel_ucb", config, agents=5, network=DELAYED, schedule={"kind": "rounds", "turns": 25})
    d, m, extra = 3, 0, 0
    sizes = {0: 0}
    for upload in by_kind(result, "upload"):
        sizes.setdefault(upload.version, -1)
    applied = [row for row in result.rows if row.event == tr.APPLY]
    assert len(applied) == result.result.rounds
    for number, model in enumerate(by_kind(result, "model"), start=1):
        upload = result.rows[result.rows[model.cause].cause]
        base = sizes[upload.version]
        added = next(n for n in range(300) if n * (d + 1) + (base + n) ** 2 + base + n == upload.scalars)
        between = m - base
        m += added
        sizes[number] = m
        full = transfer == "full" or upload.version != number - 1
        assert model.scalars == between * (d + 1) + (m * m + m if full else 0)
        extra += between
    assert extra > 0


def most_at_once(exchanges: str, **plan: Any) -> int:
    config = {**SMALL, "server": {"exchanges": exchanges}}
    result = run("async_kernel_ucb", config, agents=5, schedule={"kind": "rounds", "turns": 25}, **plan)
    open_exchanges, most = 0, 0
    for row in result.rows:
        if row.event == tr.SEND and result.names[row.kind] in ("dictionary", "model"):
            open_exchanges += 1 if result.names[row.kind] == "dictionary" else -1
            most = max(most, open_exchanges)
    return most


def test_a_server_waits_for_an_upload_as_long_as_it_has_patience() -> None:
    server: Any = run("async_kernel_ucb", {"server": {"exchanges": "serial"}}, agents=2).engine.server
    ((first, _),) = server.receive(Request(version=0), 0)
    assert (first, server.receive(Request(version=0), 1)) == (0, [])
    ((_, earlier),), ((_, patience),) = (server.on_timer(Silence(about=0)) for _ in range(2))
    assert server.on_timer(earlier) is None  # more is missed since
    assert [recipient for recipient, _ in server.on_timer(patience)] == [1]
    assert server.on_timer(patience) is None


def test_exchanges_overlap_where_they_may() -> None:
    """In series they never do, and by default only where there are delays."""
    assert most_at_once("serial", network=DELAYED) == most_at_once("auto") == 1
    assert most_at_once("interleaved") > 1
    comes_and_goes = {"availability": {"kind": "markov_on_off", "mean_up": 5.0, "mean_down": 1.0}}
    assert most_at_once("auto", agent=comes_and_goes) == 1


@every(
    "plan",
    [
        {"network": DELAYED},
        {"agent": {"compute": 0.5}},
        {"agent": {"handling": 0.5}},
        {"server": {"handling": 0.5}},
        {"agent": {"energy": {"capacity": 1e9, "per_turn": 1.0}}},
    ],
)
def test_exchanges_overlap_by_default_where_something_takes_time(plan: dict[str, Any]) -> None:
    auto = run("async_kernel_ucb", SMALL, agents=5, schedule={"kind": "rounds", "turns": 25}, **plan)
    chosen = {**SMALL, "server": {"exchanges": "interleaved"}}
    interleaved = run("async_kernel_ucb", chosen, agents=5, schedule={"kind": "rounds", "turns": 25}, **plan)
    assert auto.result.fingerprint == interleaved.result.fingerprint
    assert auto.result.warnings == interleaved.result.warnings == ()


def test_a_run_with_delays_and_serial_exchanges_says_so() -> None:
    config = {**SMALL, "server": {"exchanges": "serial"}}
    (warning,) = run("async_kernel_ucb", config, network=DELAYED).result.warnings
    assert warning.startswith("server.exchanges: serial finishes one exchange before it answers the next")
    assert run("async_kernel_ucb", config).result.warnings == ()


@pytest.mark.parametrize("blocking", [True, False])
def test_a_blocking_agent_takes_no_turn_during_its_exchange(blocking: bool) -> None:
    config = {**SMALL, "blocking": blocking}
    result = run("async_kernel_ucb", config, agents=4, network=DELAYED, schedule={"kind": "rounds", "turns": 25})
    engaged: set[int] = set()
    during = 0
    for row in result.rows:
        if row.event == tr.TRIGGER:
            engaged.add(row.node)
        elif row.event == tr.MODEL:
            engaged.discard(row.node)
        elif row.event == tr.TURN:
            during += row.node in engaged
    assert (during == 0) == blocking
    assert len(result.pulls) == 100
    assert len(result.events(tr.WAIT)) == (len(result.events(tr.TRIGGER)) if blocking else 0)


def test_without_exchanges_or_points_nothing_is_sent() -> None:
    alone = run("async_kernel_ucb", {**SMALL, "threshold": 1e30})
    assert (alone.result.rounds, alone.result.totals["scalars"]) == (0, 0)
    empty = run("async_kernel_ucb", {**SMALL, "q": 0.0}).result
    assert (empty.totals["scalars"], empty.totals["dictionary_size"]) == (0, 0)
    assert empty.rounds > 0


THEORY = {"delta": 0.2, "epsilon": 0.4, "B": 0.7, "R": 0.15}


@every("case", everyday(4, range(12)))
def test_theory_is_that_of_the_pseudo_code(case: int) -> None:
    """Each of alpha, q and D from its formula, alone and together, with the schedule's turns for T."""
    plan, config = random_case("async_kernel_ucb", case)
    theory = [("alpha",), ("q",), ("threshold",), ("alpha", "q", "threshold")][case % 4]
    config |= {"threshold": 0.7, **THEORY, **dict.fromkeys(theory, "theory")}
    turns = plan["schedule"]["turns"] * (plan["agents"] if plan["schedule"]["kind"] == "rounds" else 1)
    simulated, expected = beside("async_kernel_ucb", ORACLES["async_kernel_ucb"], config, plan, T=turns)
    assert_equal(simulated, expected)
    assert expected.rounds > 0


def test_alpha_of_theory_needs_an_exchange_threshold() -> None:
    with pytest.raises(ValueError, match="alpha: theory needs a threshold > 0"):
        AsyncConfig(alpha="theory", threshold=0.0)


def test_q_of_theory_needs_the_number_of_turns() -> None:
    think = {"kind": "exponential", "rate": 1.0}
    timed = {"kind": "renewal", "think": think, "duration": 10.0}
    with pytest.raises(UnsupportedScenario, match="give horizon"):
        run("async_kernel_ucb", {**SMALL, "q": "theory"}, schedule=timed)
    known = run("async_kernel_ucb", {**SMALL, "q": "theory", "horizon": 100}, schedule=timed)
    assert known.result.rounds > 0


def test_pulls_that_tell_nothing_do_not_end_the_run() -> None:
    """Their variance is exactly 0, so that nobody can say after how many of them an exchange is due."""
    domain = {"kind": "box", "dimension": 2, "points": 3, "high": 1e-170}
    problem = {"kind": "fixed_domain", "domain": domain, "reward": {"kind": "cosine"}, "noise": 0.1}
    result = run("async_kernel_ucb", {"kernel": {"kind": "linear"}}, problem=problem)
    assert (len(result.pulls), result.sent) == (60, [])


def test_a_model_without_statistics_has_none_of_size_0() -> None:
    points, rewards = np.zeros((3, 2)), np.zeros(3)
    bare = ServerModel(points=points, rewards=rewards, A=None, b=None)
    whole = ServerModel(points=points, rewards=rewards, A=np.zeros((4, 4)), b=np.zeros(4))
    assert [(model.s, model.m, model.scalars) for model in (bare, whole)] == [(3, 0, 9), (3, 4, 29)]


def between_exchanges(**config: Any) -> tuple[Any, Any, ArmSet]:
    """An agent and the server of a run that is over, and arms."""
    engine = run("async_kernel_ucb", {**SMALL, **config}, agents=2, schedule={"kind": "rounds", "turns": 3}).engine
    agent = engine.agents[0]
    return agent, engine.server, ArmSet(np.random.default_rng(7).normal(size=(3, agent.context.dimension)))


def request_of(agent: Any, arms: ArmSet) -> Request:
    """What an agent with the threshold 0 asks for after a pull."""
    ((recipient, request),) = agent.observe(arms, agent.choose(arms), 0.5)
    assert recipient == SERVER
    assert isinstance(request, Request)
    return request


def test_an_answer_to_a_request_that_was_given_up_is_declined_and_so_is_one_that_comes_again() -> None:
    agent, server, arms = between_exchanges(threshold=0.0)
    given_up = request_of(agent, arms)
    ((_, late),) = server.receive(given_up, 0)
    assert agent.undelivered(given_up, SERVER) == []
    *_, (_, model) = server.receive(request_of(agent, arms), 0)
    ((_, declined),) = agent.receive(late, SERVER)
    ((_, upload),) = agent.receive(model, SERVER)
    ((_, once_more),) = agent.receive(model, SERVER)
    assert [type(message) for message in (declined, upload, once_more)] == [Declined, Upload, Declined]
    assert (declined.answers, upload.answers, once_more.answers) == (late.talk, model.talk, model.talk)


def test_turns_to_come_may_offer_different_numbers_of_arms() -> None:
    """Without data the deviation of a linear kernel is the norm of the arm."""
    agent, _, arms = between_exchanges(threshold=1e6, kernel={"kind": "linear"})
    turns = [arms, ArmSet(np.vstack([arms.features, 2.0 * arms.features])), arms.select(np.array([0, 1]))]
    agent.look_ahead(turns)
    longest = [int(np.linalg.norm(turn.features, axis=1).argmax()) for turn in turns]
    assert [agent.choose(turn) for turn in turns] == longest
