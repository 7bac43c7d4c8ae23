"""Questions to many: whose answers end the wait, what is known of the others, and what a round continues."""

from typing import Any

import pytest

from coband.simulator.core.conversations import Answers, Declined, Unanswered, late, on
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import SERVER, Address
from tests.core.conversations.talking import ALL_AGENTS, Ask, Call, Centre, News, Reply, Talker, Wire, context

AGENTS = 3


class Member(Talker):
    """Answers a call, and asks what becomes of it."""

    @on(Call)
    async def take_part(self, call: Call, server: Address) -> None:
        news = await self.ask(server, Reply(number=self.context.index), reply=News, undo=self.undone.append)
        self.log.append(news.reason if isinstance(news, Unanswered) else news.number)


class Head(Centre):
    """Calls all agents, and tells them what came of it."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.rounds: list[Answers[Reply]] = []
        self.late: list[Address] = []

    async def hold(self, **how: Any) -> None:
        answers = await self.gather(Call(round=len(self.rounds)), reply=Reply, **how)
        self.rounds.append(answers)
        self.tell(ALL_AGENTS, News(number=7))

    @late(Reply)
    def note(self, reply: Reply, agent: Address) -> None:
        self.late.append(agent)


def room() -> tuple[list[Member], Head, Wire]:
    members = [Member(context(index, AGENTS)) for index in range(AGENTS)]
    head = Head(context(SERVER, AGENTS))
    return members, head, Wire(*members, head)


def held(wire: Wire, head: Head, **how: Any) -> None:
    wire.post(SERVER, head.begin(head.hold(**how)))


def test_all_answer_in_any_order_and_come_in_that_of_addresses() -> None:
    members, head, wire = room()
    held(wire, head)
    for _ in range(AGENTS):
        wire.deliver()
    for place in (2, 0):
        wire.deliver(place)
        assert head.rounds == []
    assert {answer.number for answer in head.collected} == {0, 2}  # type: ignore[attr-defined]
    wire.settle()
    assert [(source, reply.number) for source, reply in head.rounds[0].items()] == [(0, 0), (1, 1), (2, 2)]
    assert head.rounds[0].left == {}
    assert [member.log for member in members] == [[7], [7], [7]]
    assert head.collected == []
    assert not any(isinstance(packet.message, Declined) for packet in wire.sent)  # what goes to all answers them all


def test_those_who_cannot_be_reached_are_left_out() -> None:
    members, head, wire = room()
    held(wire, head)
    wire.deliver()
    while any(packet.to == 1 for packet in wire.packets):
        wire.lose(next(place for place, packet in enumerate(wire.packets) if packet.to == 1))
        again = [place for place, one in enumerate(wire.timers) if one[2].kind == "resend"]
        if again:
            wire.ring(again[0])
    wire.settle()
    assert list(head.rounds[0]) == [0, 2]
    assert head.rounds[0].left == {1: "undelivered"}
    assert members[1].log == []


def test_a_quorum_is_enough_once_the_time_is_over() -> None:
    members, head, wire = room()
    held(wire, head, quorum=2, timeout=5.0)
    for _ in range(AGENTS):
        wire.deliver()
    wire.deliver()
    wire.ring()
    assert head.rounds == []
    wire.deliver()
    assert [(list(answers), answers.left) for answers in head.rounds] == [([0, 1], {2: "silent"})]
    wire.settle()
    assert head.late == [2]
    assert [member.log for member in members] == [[7], [7], [7]]  # the news to all answers the late one, too


def test_what_goes_to_all_ends_a_wait_and_does_not_show_that_the_answer_came() -> None:
    members, head, wire = room()
    held(wire, head, quorum=2, timeout=5.0)
    for _ in range(AGENTS):
        wire.deliver()
    lost = wire.packets.pop()  # the answer of agent 2
    wire.deliver()
    wire.deliver()
    wire.ring()
    while wire.packets:
        wire.deliver()
    assert members[2].log == [7]
    assert members[2].undone == []
    wire.packets.append(lost)
    wire.lose()
    assert members[2].undone == [lost.message]


def test_before_the_time_is_over_a_quorum_waits_for_all() -> None:
    _, head, wire = room()
    held(wire, head, quorum=1, timeout=5.0)
    for _ in range(AGENTS + 2):
        wire.deliver()
    assert head.rounds == []
    wire.deliver()
    assert len(head.rounds[0]) == AGENTS


def test_together_means_all_or_none() -> None:
    _, head, wire = room()
    held(wire, head, together=True)
    wire.deliver()
    wire.deliver()
    wire.post(SERVER, head.receive(_decline(wire.packets[0].message), 2))
    assert list(head.rounds[0]) == []
    assert head.rounds[0].left == {0: "silent", 1: "silent", 2: "declined"}


def _decline(question: Message) -> Message:
    found = Declined()
    found.__dict__["answers"] = question.talk
    return found


def test_answers_that_are_taken_are_not_kept() -> None:
    _, head, wire = room()
    taken = []
    held(wire, head, taking=lambda reply, agent: taken.append((reply.number, agent)))
    wire.settle()
    assert sorted(taken) == [(0, 0), (1, 1), (2, 2)]
    assert not any(isinstance(answer, Reply) for answer in head.rounds[0].values())


def test_only_those_are_asked_that_are_named() -> None:
    _, head, wire = room()
    held(wire, head, to=[2, 0])
    assert [packet.to for packet in wire.packets] == [0, 2]
    wire.settle()
    assert list(head.rounds[0]) == [0, 2]


def test_without_a_question_each_sends_by_itself_and_filters_say_what_counts() -> None:
    members, head, wire = room()
    wire.post(SERVER, head.begin(_listens(head)))
    for member in members:
        member.tell(SERVER, Reply(number=member.context.index))
        wire.post(member.context.index, member.sent())
        member.tell(SERVER, Reply(number=10 + member.context.index))
        wire.post(member.context.index, member.sent())
    head.ignores = (Reply,)  # type: ignore[misc]
    wire.settle()
    assert {source: reply.number for source, reply in head.rounds[0].items()} == {0: 10, 1: 11, 2: 12}


async def _listens(head: Head) -> None:
    head.rounds.append(await head.gather(None, reply=Reply, where=lambda reply: reply.number >= 10))


def test_a_round_that_ends_tells_whom_it_left_out_that_nothing_follows() -> None:
    class Mute(Head):
        async def hold(self, **how: Any) -> None:
            self.rounds.append(await self.gather(Call(round=0), reply=Reply, **how))

    members = [Member(context(index, AGENTS)) for index in range(AGENTS)]
    head = Mute(context(SERVER, AGENTS))
    wire = Wire(*members, head)
    held(wire, head)
    wire.settle()
    assert [member.log for member in members] == [["declined"]] * AGENTS
    assert all(len(member.undone) == 0 for member in members)


def test_a_late_answer_to_nobody_is_declined() -> None:
    class Plain(Centre):
        async def hold(self, **how: Any) -> None:
            await self.gather(Call(round=0), reply=Reply, **how)

    members = [Member(context(index, AGENTS)) for index in range(AGENTS)]
    head = Plain(context(SERVER, AGENTS))
    wire = Wire(*members, head)
    wire.post(SERVER, head.begin(head.hold(quorum=0, timeout=1.0)))
    wire.ring()
    wire.settle()
    assert [member.log for member in members] == [["declined"]] * AGENTS


def test_pulls_that_nobody_takes_are_a_mistake() -> None:
    head = Centre(context(SERVER, AGENTS))
    reply = Reply(pulls=2)
    reply.__dict__["answers"] = 5
    with pytest.raises(TypeError, match=r"got a 'reply' with 2 pulls .* marked @late\(Reply\)"):
        head.receive(reply, 0)
    with pytest.raises(TypeError, match=r"got a 'news' with 3 pulls .* marked @on\(News\)"):
        head.receive(News(pulls=3), 0)


def test_a_doubled_answer_counts_once() -> None:
    _, head, wire = room()
    held(wire, head)
    for _ in range(AGENTS):
        wire.deliver()
    wire.deliver(0, keep=True)
    wire.deliver(0)
    assert head.late == [0]
    wire.settle()
    assert list(head.rounds[0]) == [0, 1, 2]


def test_rounds_do_not_take_each_others_answers() -> None:
    _, head, wire = room()
    held(wire, head, quorum=0, timeout=1.0)
    late_calls = [wire.packets.pop() for _ in range(AGENTS)]
    wire.ring()
    assert [list(answers) for answers in head.rounds] == [[]]
    wire.packets.clear()
    held(wire, head)
    wire.packets += late_calls
    for place in (AGENTS, AGENTS, AGENTS):
        wire.deliver(place)  # late calls of the first round
    for _ in range(AGENTS):
        wire.deliver(AGENTS)  # and the answers to them
    assert len(head.rounds) == 1
    assert sorted(head.late) == [0, 1, 2]
    wire.settle()
    assert list(head.rounds[1]) == [0, 1, 2]


def test_who_asks_to_one_after_a_gather_answers_it() -> None:
    class Pair(Head):
        async def hold(self, **how: Any) -> None:
            await self.gather(Call(round=0), reply=Reply)
            for agent in range(AGENTS):
                self.tell(agent, News(number=agent))

    members = [Member(context(index, AGENTS)) for index in range(AGENTS)]
    head = Pair(context(SERVER, AGENTS))
    wire = Wire(*members, head)
    held(wire, head)
    wire.settle()
    assert [member.log for member in members] == [[0], [1], [2]]
    assert not any(isinstance(packet.message, Declined) for packet in wire.sent)


def test_whom_a_round_asks_once_more_in_vain_is_told_nothing() -> None:
    class Doubting(Head):
        async def hold(self, **how: Any) -> None:
            await self.gather(Call(round=0), reply=Reply)
            self.rounds.append(await self.ask(0, Ask(), reply=Reply, limit=1.0))  # type: ignore[arg-type]

    class Brief(Talker):
        ignores = (Ask,)

        @on(Call)
        def answer(self, call: Call, server: Address) -> Reply:
            return Reply()

    head = Doubting(context(SERVER, AGENTS))
    wire = Wire(*(Brief(context(index, AGENTS)) for index in range(AGENTS)), head)
    held(wire, head)
    for _ in range(2 * AGENTS):
        wire.deliver()
    ((_, _, timer),) = wire.timers
    wire.post(SERVER, head.on_timer(timer))
    assert head.rounds == [Unanswered("silent")]  # type: ignore[comparison-overlap]
    assert [(packet.to, type(packet.message)) for packet in wire.packets] == [(0, Ask)]


def test_an_ask_is_no_call() -> None:
    _, head, wire = room()
    held(wire, head)
    wire.post(0, Talker(context(0, AGENTS)).start(Ask(number=1)))
    wire.settle()
    assert [ask.number for ask, _ in head.heard] == [1]  # type: ignore[attr-defined]
    assert len(head.rounds) == 1


def test_who_waits_for_what_others_send_by_themselves_waits_for_a_quorum_after_the_time() -> None:
    _, head, wire = room()

    async def listen() -> None:
        head.rounds.append(await head.gather(None, reply=Reply, quorum=1, timeout=3.0))

    wire.post(SERVER, head.begin(listen()))
    assert [timer.round for _, _, timer in wire.timers] == [-1]
    head.receive(Reply(number=4), 1)
    assert head.rounds == []
    wire.ring()
    assert [(list(answers), answers.left) for answers in head.rounds] == [([1], {0: "silent", 2: "silent"})]
    assert wire.now == 3.0
    assert not head.talks.open
