"""What nodes return and messages hold that they must not: the mistake, its place and what to write are named."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from coband.simulator.arms import ArmSet
from coband.simulator.core.conversations import Talks, on
from coband.simulator.core.nodes.message import Message, NodeMistake, payload
from coband.simulator.core.nodes.node import NEIGHBOURS, SERVER, Address, Agent, Outbox, Server, UnsupportedScenario
from coband.simulator.core.records.invariants import InvariantViolation
from tests.core.toys import TOY, News, Report, ToyAgent, ToyConfig, ToyServer, run_on_toys

HERE = r"test_mistakes\.py:\d+: "
ROUNDS: dict[str, Any] = {"kind": "rounds", "turns": 3}
REPORT = Report(values=np.ones(2))
LOOP: list[Any] = []
LOOP.append(LOOP)
PLANS: list[dict[str, Any]] = [
    {},
    {"schedule": {"kind": "one_at_a_time", "turns": 3}},
    {"agents": {"count": 2, "reward_delay": 1}},
    {"agents": {"count": 2, "compute": {"kind": "constant", "value": 1}}},
    {"agents": {"count": 12}},
]


def _run(agent: type[Agent] = ToyAgent, server: type[Server] = ToyServer, **parts: Any) -> Any:
    plan = {"agents": {"count": 2}, "schedule": ROUNDS, "network": {}, **parts}
    return run_on_toys(replace(TOY, agent=agent, server=server), ToyConfig(), plan, seed=0)[0]


def _with(base: type[Any], **methods: Callable[..., Any]) -> type[Any]:
    return type("Mine", (base,), methods)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(
    ("arm", "words"),
    [
        (None, "None"),
        (True, "True"),
        (np.True_, "a bool_?"),
        (1.0, r"1\.0"),
        (np.array([0, 1]), r"an array of shape \(2,\)"),
        (-1, "-1"),
        (2, "2"),
    ],
)
def test_what_is_no_arm(arm: Any, words: str, plan: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.core.toys.ToyWorld.pull", lambda world, agent, turn, arm: (range(2)[_checked(arm)], 0.0))
    says = rf"{HERE}Mine\.choose returned {words}; return the number of an arm, 0 \.\. 1$"
    with pytest.raises(NodeMistake, match=says):
        _run(_with(ToyAgent, choose=lambda self, arms: arm), **plan)


def _checked(arm: int) -> int:
    return arm if arm >= 0 else 10


def test_numbers_of_numpy_are_arms() -> None:
    assert _run(_with(ToyAgent, choose=lambda self, arms: np.int64(1))).turns == 6


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(
    ("outbox", "words"),
    [
        (None, r"None; return a list of \(recipient, message\), \[\] for none$"),
        (REPORT, r"a Report; return a list of"),
        ((SERVER, REPORT), r"a tuple of -1, a Report; return a list of"),
        ([REPORT], r"a list of a Report; each entry is \(recipient, message\), .* and not a Report$"),
        ([(99, REPORT)], r"a list of a tuple of 99, a Report; there is no node 99: write to SERVER, or to an agent 0"),
        ([(-2, REPORT)], r"a list of a tuple of -2, a Report; there is no node -2: "),
        ((item for item in ()), r"a generator; return a list of"),
        (LOOP, r"a list of a list of a list of a list; each entry is"),
        ([(REPORT, SERVER)], r"a list of .*; each entry is \(recipient, message\), such as \(SERVER, message\)"),
    ],
)
def test_what_is_no_outbox_of_a_turn(outbox: Any, words: str, plan: dict[str, Any]) -> None:
    with pytest.raises(NodeMistake, match=rf"{HERE}Mine\.observe returned {words}"):
        _run(_with(ToyAgent, observe=lambda self, arms, arm, reward: outbox), **plan)


@pytest.mark.parametrize("outbox", [None, REPORT, [REPORT]])
def test_what_is_no_outbox_of_a_server(outbox: Any) -> None:
    with pytest.raises(NodeMistake, match=rf"{HERE}Mine\.receive returned (None|a list of a Report|a Report); "):
        _run(server=_with(ToyServer, receive=lambda self, message, source: outbox))


def test_what_is_no_outbox_of_an_agent_that_hears_its_neighbours() -> None:
    def answer(self: Agent, message: Message, source: Address) -> None:
        return None

    agent = _with(ToyAgent, observe=lambda self, *turn: [(NEIGHBOURS, Report(values=np.ones(2)))], receive=answer)
    plan = {"agents": {"count": 3}, "schedule": ROUNDS, "network": {"topology": {"kind": "ring"}}}
    with pytest.raises(NodeMistake, match=rf"{HERE}Mine\.receive returned None; return a list of"):
        run_on_toys(replace(TOY, agent=agent, server=None), ToyConfig(), plan, seed=0)


class Answering(Talks, Server):
    """Answers in a form that is none."""

    answer: ClassVar[Any] = None

    @on(Report)
    def take(self, message: Report, source: Address) -> Any:
        return self.answer


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([REPORT], r"a list of a Report; each entry is \(recipient, message\)"),
        (
            (0, REPORT),
            r"a tuple of 0, a Report; return a message that answers, a list of .*, None, or be an `async def`",
        ),
        (3, "3; return a message that answers"),
    ],
)
def test_what_is_no_answer_of_a_handler(answer: Any, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Answering, "answer", answer)
    with pytest.raises(NodeMistake, match=rf"{HERE}Answering\.take returned {words}"):
        _run(server=Answering)


@pytest.mark.parametrize("base", [ToyAgent, ToyServer])
@pytest.mark.parametrize("early", [False, True])
def test_an_init_that_forgets_that_of_its_base(base: type[Any], early: bool) -> None:
    def forgetful(self: Any, context: Any) -> None:
        self.size = self.context.config.size if early else 3

    node = _with(base, __init__=forgetful)
    says = rf"{HERE}Mine\.__init__ must begin with `super\(\)\.__init__\(context\)`"
    with pytest.raises(UnsupportedScenario, match=says):
        _run(**{"agent" if base is ToyAgent else "server": node})


@pytest.mark.parametrize(
    ("base", "method", "takes", "given"),
    [
        (ToyAgent, "choose", lambda self: 0, "arms"),
        (ToyAgent, "__init__", lambda self: None, "context"),
        (ToyServer, "receive", lambda self, message: [], "message, source"),
        (ToyServer, "discrepancies", lambda self: (), "uploads"),
    ],
)
def test_a_method_with_other_parameters(base: type[Any], method: str, takes: Any, given: str) -> None:
    node = _with(base, **{method: takes})
    says = rf"{HERE}Mine\.{method} takes \(self.*\); it is called with \(self, {given}\)$"
    with pytest.raises(UnsupportedScenario, match=says):
        _run(**{"agent" if base is ToyAgent else "server": node})


def test_a_handler_with_other_parameters() -> None:
    says = rf"{HERE}test_.*take takes \(self, message\); it is called with \(self, message, source\)$"

    def take(self: Any, message: Report) -> None:
        """Lacks the sender."""

    with pytest.raises(NodeMistake, match=says):
        on(Report)(take)


@pytest.mark.parametrize("plan", PLANS)
def test_a_world_that_gives_no_reward_or_no_regret(plan: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.core.toys.ToyWorld.pull", lambda world, agent, turn, arm: 0.5)
    with pytest.raises(
        NodeMistake, match=rf"{HERE}ToyWorld\.pull returned 0\.5; return the reward and its pseudo-regret$"
    ):
        _run(**plan)
    monkeypatch.setattr("tests.core.toys.ToyWorld.pull", lambda world, agent, turn, arm: (0.5, np.nan))
    with pytest.raises(InvariantViolation, match="the pseudo-regret of a turn is nan, and must be a number >= 0"):
        _run(**plan)


@pytest.mark.parametrize("server", ["tests.core.toys:Nobody", "no_such_module_of_a_test:Server"])
def test_a_server_that_is_not_there(server: str) -> None:
    says = rf"server='{server}' cannot be imported: .*; give Algorithm\.server \"module:Class\", or the class itself"
    with pytest.raises(UnsupportedScenario, match=says):
        _run(server=server)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "words"),
    [(np.ones(3), "an array"), ([1.0, 2.0], r"a list of 1\.0, 2\.0"), ((1.0,), r"a tuple of 1\.0"), ({}, "a dict")],
)
def test_a_field_that_nobody_would_count(value: Any, words: str) -> None:
    says = rf"{HERE}Sums\.sums is {words} and no payload, so that nobody would count it; write `sums: Any = payload"

    class Sums(Message):
        kind: ClassVar[str] = "sums"
        values: float = payload()
        sums: Any = None

    Sums.payload_fields()  # asked for before anything is sent
    agent = _with(ToyAgent, observe=lambda self, arms, arm, reward: [(SERVER, Sums(values=1.0, sums=value))])
    with pytest.raises(NodeMistake, match=says):
        _run(agent)


@pytest.mark.parametrize("value", [{}, [{}], "text"])
def test_a_payload_that_has_no_size(value: Any) -> None:
    class Sums(Message):
        kind: ClassVar[str] = "sums"
        sums: Any = payload()

    agent = _with(ToyAgent, observe=lambda self, arms, arm, reward: [(SERVER, Sums(sums=value))])
    with pytest.raises(NodeMistake, match=rf"{HERE}Sums: a payload of type (dict|str) has no size in scalars; use arr"):
        _run(agent)


@pytest.mark.parametrize("value", [None, 2, 0.5, np.float64(0.5), np.int64(3), "text", True, (1, "a", None), ()])
def test_labels_and_single_numbers_are_header(value: Any) -> None:
    class Labelled(Message):
        kind: ClassVar[str] = "labelled"
        values: float = payload()
        label: Any = None

    assert Labelled(values=1.0, label=value).scalars == 1


class Asker(Talks, ToyAgent):
    """Asks after each pull."""

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        self.unshared += 1
        return self.begin(self.ask_once())

    async def ask_once(self) -> None:
        await self.ask(SERVER, Report(values=np.ones(2), pulls=1), reply=News)


class Answerer(Talks, Server):
    """Answers the first questions."""

    answers: ClassVar[int] = 0

    @on(Report)
    def take(self, message: Report, source: Address) -> News | None:
        self.rounds += 1
        return News(total=1.0) if self.rounds <= self.answers else None


@pytest.mark.parametrize(
    ("answers", "parts", "warned"),
    [
        (0, {}, ["6 of 6 questions 'report' arrived and got no answer: the method that handles them returns none"]),
        (1, {}, []),
        (6, {}, []),
        (0, {"network": {"loss": 0.5, "retransmission": {"max_attempts": 1}}}, []),
    ],
)
def test_questions_of_which_none_is_answered(
    answers: int, parts: dict[str, Any], warned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Answerer, "answers", answers)
    assert list(_run(Asker, Answerer, **parts).warnings) == warned


@pytest.mark.parametrize("returned", [True, False])
def test_what_is_told_and_not_returned(returned: bool) -> None:
    def observe(node: Asker, arms: ArmSet, arm: int, reward: float) -> Outbox:
        node.unshared += 1
        node.tell(SERVER, Report(values=np.ones(2)))
        return node.sent() if returned else []

    says = "6 messages that were told were never sent: outside a conversation return self.sent() after self.tell"
    assert list(_run(_with(Asker, observe=observe), Answerer).warnings) == ([] if returned else [says])
