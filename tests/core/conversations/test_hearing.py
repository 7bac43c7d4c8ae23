"""An answer that is asked for and listened for at once; members that are gone; all that may be said of a question."""

from dataclasses import replace
from typing import Any

import pytest

from coband.simulator.core.conversations import Answers, Line, Unanswered, on
from coband.simulator.core.conversations.question import Question
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import SERVER, Address, NodeContext
from tests.core.conversations.talking import Ask, Call, Centre, News, Reply, Talker, Wire, context, pair


async def _listen(agent: Talker, kind: type[Message]) -> None:
    heard, source = await agent.hear(kind)
    agent.log.append((heard.kind, source))


@pytest.mark.parametrize("kind", [Reply, News])
def test_an_answer_is_for_who_asked_and_for_who_listens(kind: type[Message]) -> None:
    """Whoever listens for what others have asked for hears it as well; who listens for something else does not."""
    agent, _, wire = pair()
    wire.post(0, agent.begin(_listen(agent, kind)))
    wire.post(0, agent.start(Ask(number=3)))
    wire.deliver()
    answer = wire.deliver()
    assert agent.log == ([("reply", SERVER)] if kind is Reply else []) + [answer]
    assert len(list(agent.blocked_on)) == (kind is News)


class Roll(Centre):
    """Calls those that are there."""

    answers: Answers[Reply] | None = None

    async def call(self) -> None:
        self.answers = await self.gather(Call(), reply=Reply)


class Present(Talker):
    """Answers a call."""

    async def main(self) -> None:  # type: ignore[override]
        while True:
            _, server = await self.hear(Call)
            self.tell(server, Reply(number=self.context.index))


def test_nobody_waits_for_an_agent_that_takes_no_part() -> None:
    head = Roll(replace(context(SERVER, 3), gone={1}))
    wire = Wire(head, *(Present(context(index, 3)) for index in range(3)))
    wire.post(SERVER, head.begin(head.call()))
    wire.packets = [packet for packet in wire.packets if packet.to != 1]
    while wire.packets:
        wire.deliver()
    assert head.answers is not None
    assert ([*head.answers], head.answers.left) == ([0, 2], {})


def test_all_that_may_be_said_of_a_question_may_be_said_at_once() -> None:
    options: dict[str, Any] = {
        "public": True,
        "where": None,
        "undo": print,
        "attempts": 3,
        "limit": 2.5,
        "needed": 2,
        "together": True,
        "taking": print,
        "line": Line(None),
        "anybody": True,
    }
    question = Question((Reply,), set(), Question.one, **options)
    assert question.one() == Unanswered("silent")
    assert {option: getattr(question, option) for option in options} == options


class Handing(Talker):
    """Begins conversations where what `begin` returns is not needed: the node has been called and answers later."""

    def __init__(self, context: NodeContext, nested: bool) -> None:
        super().__init__(context)
        self.nested = nested

    async def _outer(self) -> None:
        self.begin(self._ask(Ask(number=1)))
        assert self.sent() == []

    @on(Call)
    def called(self, call: Call, server: Address) -> None:
        """Ask, or begin a conversation that begins one which asks."""
        if self.nested:
            self.begin(self._outer())
        else:
            self.begin(self._ask(Ask(number=1)))
            assert self.sent() == []


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_what_a_called_node_begins_goes_out_with_its_answer(nested: bool, first: bool) -> None:
    agent = Handing(context(0), nested)
    assert agent.sent() == []
    if not first:
        agent.start(Ask(number=7))
    assert [message.kind for _, message in agent.receive(Call(), SERVER)] == ["ask"]


def test_what_a_conversation_begins_goes_out_with_what_it_sends() -> None:
    agent = Handing(context(0), True)
    assert [message.kind for _, message in agent.begin(agent._outer())] == ["ask"]
