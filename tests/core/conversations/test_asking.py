"""A question has one outcome: its answer, or a reason why there is none; mistakes are named with what to write."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from coband.simulator.core.conversations import Line, late, on
from coband.simulator.core.nodes.node import SERVER, Address
from coband.simulator.core.nodes.outbox import Silence
from tests.core.conversations.talking import Ask, Call, Centre, News, Reply, Talker, Wire, context, pair


def test_an_answer_ends_the_wait() -> None:
    agent, _, wire = pair()
    wire.post(0, agent.start(Ask(number=3)))
    assert list(agent.blocked_on) == [
        f"{Talker._ask.__qualname__}, line {_line(agent)}: waits for Reply from the server"
    ]
    wire.settle()
    (answer,) = agent.log
    assert answer.number == 3
    assert not agent.undone
    assert not agent.waiting


def _line(agent: Talker) -> int:
    (conversation,) = agent.talks.under_way.values()
    frame = conversation.steps.cr_frame  # type: ignore[attr-defined]
    assert isinstance(frame.f_lineno, int)
    return frame.f_lineno


def test_messages_carry_what_they_ask_and_answer() -> None:
    agent, _, wire = pair()
    wire.post(0, agent.start(Ask()))
    wire.settle()
    ask, reply = (packet.message for packet in wire.sent)
    assert (ask.asks, ask.answers, reply.asks, reply.answers) == (1, 0, 0, ask.talk)
    assert ask.talk != reply.talk
    assert {packet.message.talk % 2 for packet in wire.sent} == {0, 1}  # each node has numbers of its own


def test_a_question_that_is_given_up_is_asked_again_after_waits_that_grow() -> None:
    agent, _, wire = pair(attempts=2, timeout=1.0, backoff=3.0)
    wire.post(0, agent.start(Ask(number=1)))
    first = wire.packets[0].message
    waits = []
    for _ in range(2):
        assert wire.lose() is first
        waits.append(next(time - wire.now for time, node, timer in wire.timers if not isinstance(timer, Silence)))
        wire.timers = [timer for timer in wire.timers if not isinstance(timer[2], Silence)]
        wire.ring()
    assert waits == [1.0, 3.0]
    wire.lose()
    assert agent.log == ["undelivered"]
    assert agent.undone == [first]


def test_it_is_asked_as_often_as_it_says() -> None:
    agent, _, wire = pair(attempts=2)
    wire.post(0, agent.start(Ask(), attempts=0))
    wire.lose()
    assert agent.log == ["undelivered"]
    assert len(agent.undone) == 1


def test_a_lost_answer_is_sent_again() -> None:
    agent, server, wire = pair()
    wire.post(0, agent.start(Ask(number=5)))
    wire.deliver()
    wire.lose()
    wire.settle()
    assert [answer.number for answer in agent.log] == [5]
    assert len(server.heard) == 1


def test_a_question_that_was_given_up_and_is_answered_all_the_same_is_not_undone() -> None:
    agent, _, wire = pair()
    wire.post(0, agent.start(Ask(number=6)))
    question = wire.deliver()
    wire.post(0, agent.undelivered(question, SERVER))  # only that it had come did not come back
    wire.deliver()
    assert [answer.number for answer in agent.log] == [6]
    assert agent.undone == []
    wire.settle()
    assert len(wire.sent) == 2, "it is not asked again"


def test_after_patience_nobody_waits_and_a_late_answer_undoes_nothing() -> None:
    agent, _, wire = pair(patience=50.0)
    wire.post(0, agent.start(Ask()))
    ((_, question),) = [(packet.to, packet.message) for packet in wire.packets]
    wire.post(0, agent.on_timer(Silence(about=SERVER)))
    assert wire.timers[0][0] == 50.0
    wire.ring()
    assert agent.log == ["silent"]
    assert agent.undone == []
    wire.deliver()
    wire.deliver()  # the answer comes all the same
    assert agent.undone == []
    assert agent.log == ["silent"]
    assert question.talk


def test_a_question_that_is_given_up_when_nobody_waits_any_more_is_undone_once() -> None:
    agent, _, wire = pair()
    wire.post(0, agent.start(Ask(), limit=2.0))
    wire.ring()
    assert agent.log == ["silent"]
    assert agent.undone == []
    message = wire.lose()
    assert agent.undone == [message]
    assert agent.on_timer(Silence(about=SERVER)) is None


def test_the_end_of_patience_matters_though_nothing_is_sent() -> None:
    agent, _, _ = pair()
    agent.start(Ask())
    ((_, timer),) = agent.on_timer(Silence(about=SERVER)) or []
    assert agent.on_timer(timer) == []
    assert agent.log == ["silent"]


def test_a_limit_ends_the_wait_and_nothing_rings_after_an_answer() -> None:
    agent, _, wire = pair()
    wire.post(0, agent.start(Ask(), limit=4.0))
    wire.deliver()
    wire.deliver()
    assert [type(one) for one in agent.log] == [Reply]
    ((_, _, timer),) = wire.timers
    assert agent.on_timer(timer) is None
    wire.timers.clear()
    wire.post(0, agent.start(Ask(), limit=4.0))
    wire.ring()
    assert agent.log[1:] == ["silent"]


def test_a_silence_from_before_counts_when_somebody_begins_to_wait() -> None:
    agent, _, wire = pair(patience=50.0)
    assert agent.on_timer(Silence(about=SERVER)) is None  # nobody waits
    wire.post(0, agent.begin(_listener(agent)))
    assert wire.timers[0][2].round == -1
    wire.ring()
    assert agent.log == ["silent"]


def test_a_silence_from_before_counts_once_and_not_for_a_place_in_a_line() -> None:
    async def stands() -> None:
        await agent.enter(line)
        await agent.enter(Line(0))

    agent, _, wire = pair(patience=50.0)
    agent.on_timer(Silence(about=SERVER))
    line = Line(1)
    assert agent.begin(stands()) == []
    assert agent.begin(stands()) == []
    assert len(list(agent.blocked_on)) == 2
    wire.post(0, agent.start(Ask()))
    wire.post(0, agent.start(Ask()))
    assert len(wire.timers) == 1


async def _listener(agent: Talker) -> None:
    found = await agent.gather(None, reply=News, to=[SERVER])
    agent.log += found.left.values()


def test_either_of_two_kinds_is_an_answer() -> None:
    async def either() -> None:
        agent.log.append(await agent.ask(SERVER, Ask(), reply=(News, Reply)))

    agent, _, wire = pair()
    wire.post(0, agent.begin(either()))
    assert next(agent.blocked_on).endswith("waits for News or Reply from the server")
    wire.settle()
    assert [type(one) for one in agent.log] == [Reply]


def test_a_filter_and_another_kind_are_no_answer() -> None:
    class Fussy(Talker):
        ignores = (Reply,)

    agent, server = Fussy(context(0, 1)), Centre(context(SERVER, 1))
    wire = Wire(agent, server)
    wire.post(0, agent.start(Ask(number=1), where=lambda reply: reply.number > 1))
    wire.deliver()
    wire.deliver()
    assert agent.log == []


def test_a_public_question_is_answered_by_what_goes_to_all() -> None:
    class Crier(Centre):
        @on(Call)
        def cry(self, call: Call, agent: Address) -> list[Any]:
            return [(0, Reply(number=8))]

    agent, server = Talker(context(0, 1)), Crier(context(SERVER, 1))
    wire = Wire(agent, server)
    wire.post(0, agent.start(Call(), public=True))
    assert wire.packets[0].message.asks == 2
    wire.deliver()
    wire.deliver()
    assert [answer.number for answer in agent.log] == [8]


def test_blocking_conversations_hold_turns_until_all_have_ended() -> None:
    agent, _, wire = pair()
    wire.post(0, agent.begin(agent._ask(Ask()), blocking=True))
    wire.post(0, agent.begin(agent._ask(Ask()), blocking=True))
    assert agent.waiting
    wire.deliver()
    wire.deliver(1)
    assert agent.waiting
    wire.settle()
    assert not agent.waiting


def test_pulls_that_are_under_way_are_not_unshared() -> None:
    agent, server, wire = pair()
    agent.unshared = 5
    wire.post(0, agent.start(Ask(pulls=3)))
    assert agent.unshared == 2
    wire.lose()
    assert agent.unshared == 5
    wire.ring(next(place for place, one in enumerate(wire.timers) if not isinstance(one[2], Silence)))
    assert agent.unshared == 2
    wire.deliver()
    assert server.applied == 3


async def _forgets(node: Talker) -> None:
    node.ask(SERVER, Ask(), reply=Reply)  # type: ignore[unused-awaitable]


async def _forgets_one(node: Talker) -> None:
    node.ask(SERVER, Ask(), reply=Reply)  # type: ignore[unused-awaitable]
    await node.hear(News)


async def _awaits_twice(node: Talker) -> None:
    question = node.ask(SERVER, Ask(), reply=Reply, attempts=0)
    await question
    await question


async def _sends_twice(node: Talker) -> None:
    message = News()
    node.tell(SERVER, message)
    node.tell(SERVER, message)


async def _sends_an_array(node: Talker) -> None:
    node.tell(SERVER, np.zeros(3))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (_sends_an_array, "an object of type ndarray was given where a coband.Message is sent"),
        (_forgets, "Talker asks for Reply and does not wait: write `await` before it"),
        (_forgets_one, "Talker asks for Reply and does not wait: write `await` before it"),
        (_sends_twice, "this 'news' has been sent before; make a new message each time"),
    ],
)
def test_a_mistake_is_named(wrong: Callable[[Talker], Any], text: str) -> None:
    agent, _, _ = pair()
    with pytest.raises(TypeError, match=text):
        agent.begin(wrong(agent))


def test_a_question_is_awaited_once() -> None:
    agent, _, wire = pair()
    wire.post(0, agent.begin(_awaits_twice(agent)))
    with pytest.raises(TypeError, match="await only what `ask`, .* and each once; a new message asks again"):
        wire.lose()


def test_outside_of_a_conversation_nobody_can_wait() -> None:
    agent, _, _ = pair()
    with pytest.raises(TypeError, match=re.escape("in a conversation that begins with `return self.begin(self.")):
        agent.ask(SERVER, Ask(), reply=Reply)  # type: ignore[unused-awaitable]


def test_what_is_begun_is_a_conversation() -> None:
    agent, _, _ = pair()
    with pytest.raises(TypeError, match="3 is not a conversation: begin the call of an `async def`"):
        agent.begin(3)  # type: ignore[arg-type]


def test_a_main_begins_by_waiting() -> None:
    class Hasty(Talker):
        async def main(self) -> None:  # type: ignore[override]
            self.tell(SERVER, News())

    with pytest.raises(TypeError, match="Hasty.main sends before it waits; begin with `await self.hear`"):
        Hasty(context(0, 1)).receive(News(), SERVER)


@pytest.mark.parametrize("wrong", [lambda: asyncio.sleep(0.0), lambda: asyncio.sleep(1.0), lambda: _in_a_task()])
def test_there_is_no_event_loop(wrong: Callable[[], Awaitable[None]]) -> None:
    agent, _, _ = pair()
    with pytest.raises(
        TypeError, match=r"_awaits, line \d+: await only what `ask`, `gather`, `hear` and `enter` return"
    ):
        agent.begin(_awaits(wrong))


def test_who_wants_to_sleep_is_told_what_waits_for_a_while() -> None:
    agent, _, _ = pair()
    line = _awaits.__code__.co_firstlineno
    with pytest.raises(TypeError, match=f"line {line}: .*; no event loop runs, but a `limit` ends a wait"):
        agent.begin(_awaits(lambda: asyncio.sleep(1.0)))


async def _awaits(wrong: Callable[[], Awaitable[None]]) -> None:
    await wrong()


async def _in_a_task() -> None:
    await asyncio.get_running_loop().create_task(asyncio.sleep(0.0))


def test_other_errors_of_a_conversation_stay_as_they_are() -> None:
    async def fails() -> None:
        raise RuntimeError("no more arms")

    agent, _, _ = pair()
    with pytest.raises(RuntimeError, match="^no more arms$"):
        agent.begin(fails())


def test_a_silence_counts_for_all_that_wait_and_its_timer_is_of_the_oldest_round() -> None:
    agent, _, wire = pair()
    for round in (3, 4):
        wire.post(0, agent.start(Ask(round=round), limit=100.0))
    assert [timer.round for _, _, timer in wire.timers] == [3, 4]
    wire.post(0, agent.on_timer(Silence(about=SERVER)))
    assert wire.timers[-1][2].round == 3
    wire.ring()
    assert agent.log == ["silent", "silent"]


def test_a_conversation_that_has_ended_is_where_it_began() -> None:
    agent, _, wire = pair()
    wire.post(0, agent.start(Ask()))
    (conversation,) = agent.talks.under_way.values()
    agent.end()
    assert str(conversation) == f"{Talker._ask.__qualname__}, line {Talker._ask.__code__.co_firstlineno}"


class Patient(Talker):
    """Has a main conversation, and one for answers that come late."""

    mains = 0

    async def main(self) -> None:  # type: ignore[override]
        self.mains += 1
        while True:
            await self.hear(Call)

    @late(Reply)
    async def dwell(self, reply: Reply, server: Address) -> None:
        await self.hear(News)


def test_turns_go_on_unless_a_conversation_is_blocking_and_main_begins_once() -> None:
    agent, server = Patient(context(0, 1)), Centre(context(SERVER, 1))
    wire = Wire(agent, server)
    wire.post(0, agent.start(Ask(), limit=1.0))
    assert not agent.waiting
    ((_, _, timer),) = wire.timers
    assert agent.on_timer(timer) == []  # it matters, though nothing is sent
    assert agent.on_timer(timer) is None
    wire.deliver()
    wire.deliver()  # a late answer
    assert len(agent.talks.under_way) == 2
    assert not agent.waiting
    agent.receive(Call(), SERVER)
    assert agent.mains == 1


def test_a_question_has_no_options_but_those_it_knows() -> None:
    agent, _, _ = pair()
    with pytest.raises(TypeError, match=r"a question has no timeout; public, where, undo, attempts, limit$"):
        agent.ask(SERVER, Ask(), reply=Reply, timeout=3.0)  # type: ignore[arg-type]
