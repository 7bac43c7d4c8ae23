"""What is told comes through, or is taken back; what comes early is kept; conversations end where they are ended."""

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from coband.simulator.core.conversations import Declined, Talks, Unanswered, late, lost, on
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import SERVER, Address
from coband.simulator.core.nodes.outbox import Silence
from tests.core.conversations.talking import ALL_AGENTS, Ask, Call, Centre, News, Reply, Talker, Wire, context, pair


class Hearer(Talker):
    """Notes what it hears."""

    ignores = (News,)

    def receive(self, message: Message, source: Address) -> Any:
        self.log.append(getattr(message, "number", None))
        return super().receive(message, source)


def told(attempts: int = 0) -> tuple[Hearer, Centre, Wire]:
    agent, server = Hearer(context(0, 1, attempts=attempts)), Centre(context(SERVER, 1, attempts=attempts))
    return agent, server, Wire(agent, server)


def tell(wire: Wire, server: Centre, message: Message) -> None:
    server.tell(0, message)
    wire.post(SERVER, server.sent())


def test_the_newest_news_are_kept_until_their_receiver_is_heard_of() -> None:
    agent, server, wire = told()
    for number in (1, 2):
        tell(wire, server, News(number=number))
    for _ in range(2):
        wire.lose()
    tell(wire, server, Reply(number=3))  # of another kind: not newer
    wire.lose()
    assert agent.log == []
    wire.post(0, agent.start(Call()))
    server.ignores = (Call,)  # type: ignore[misc]
    wire.deliver()
    agent.ignores = (News, Reply)  # type: ignore[misc]
    while wire.packets:
        wire.deliver()
    assert [one for one in agent.log if one] == [2, 3]
    assert not server.talks.kept


def test_what_is_told_is_sent_again_unless_something_newer_of_its_kind_was_told() -> None:
    agent, server, wire = told(attempts=2)
    tell(wire, server, News(number=1))
    wire.lose()
    tell(wire, server, News(number=2))
    wire.deliver()
    wire.settle()
    assert agent.log == [2]
    tell(wire, server, News(number=3))
    wire.lose()
    wire.settle()
    assert agent.log == [2, 3]


def test_what_is_told_to_one_node_is_not_newer_for_another_and_what_is_told_to_all_is() -> None:
    server = Centre(context(SERVER, 2, attempts=1))
    agents = [Hearer(context(index, 2)) for index in range(2)]
    wire = Wire(*agents, server)
    for to, number in ((0, 1), (1, 2)):
        server.tell(to, News(number=number))
    wire.post(SERVER, server.sent())
    wire.lose()
    wire.settle()
    assert [agent.log for agent in agents] == [[1], [2]]
    server.tell(0, News(number=3))
    server.tell(ALL_AGENTS, News(number=4))
    wire.post(SERVER, server.sent())
    wire.lose()
    wire.settle()
    assert [agent.log[1:] for agent in agents] == [[4], [4]]
    for number in (5, 6):
        agents[0].tell(1, News(number=number))
    wire.post(0, agents[0].sent())
    wire.lose()
    wire.settle()
    assert agents[1].log[2:] == [6]


@pytest.mark.parametrize("index", [SERVER, 0, 2])
def test_what_continues_a_round_of_ones_own_is_not_sent_again_when_there_is_something_newer(index: Address) -> None:
    """Each node knows the numbers of its own questions."""

    async def rounds() -> None:
        await head.gather(Call(), reply=Reply, to=[1])
        for number in (1, 2):
            head.tell(1, News(number=number))

    head = Talker(context(index, 3, attempts=1)) if index >= 0 else Centre(context(SERVER, 3, attempts=1))
    member = Hearer(context(1, 3))
    member.handled = lambda *_: True  # type: ignore[method-assign]
    wire = Wire(head, member)
    wire.post(index, head.begin(rounds()))
    answer = Reply()
    answer.__dict__["answers"] = wire.packets.pop().message.talk
    wire.post(index, head.receive(answer, 1))
    assert {packet.message.answers for packet in wire.packets} == {answer.answers}
    wire.lose()
    wire.settle()
    assert member.log == [2]


def test_messages_that_count_each_are_all_sent_again() -> None:
    agent, server, wire = told(attempts=2)
    server.each = (News,)  # type: ignore[misc]
    for number in (1, 2):
        tell(wire, server, News(number=number))
    wire.lose()
    wire.lose()
    wire.settle()
    assert sorted(agent.log) == [1, 2]


def test_what_was_told_in_vain_is_taken_back() -> None:
    class Regretful(Centre):
        @lost(News)
        def take_back(self, news: News, agent: Address) -> None:
            self.heard.append((news, agent))

    server = Regretful(context(SERVER, 1, attempts=0))
    wire = Wire(Talker(context(0, 1)), server)
    tell(wire, server, News(number=4))
    message = wire.lose()
    assert server.heard == [(message, 0)]
    assert not server.talks.kept


class Early(Talker):
    """Waits for news that may have come before."""

    keeps = (News,)

    async def listen(self, number: int) -> None:
        news, source = await self.hear(News, where=lambda news: news.number == number)
        self.log.append((news.number, source))


def test_what_comes_early_is_heard_once_by_who_waits_for_it() -> None:
    agent = Early(context(0, 1))
    for number in (2, 1):
        agent.receive(News(number=number), SERVER)
    agent.begin(agent.listen(1))
    assert agent.log == [(1, SERVER)]
    agent.begin(agent.listen(1))
    assert agent.log == [(1, SERVER)]
    agent.begin(agent.listen(2))
    assert agent.log == [(1, SERVER), (2, SERVER)]
    agent.receive(News(number=1), SERVER)
    assert agent.log[2:] == [(1, SERVER)]
    assert (agent.talks.mail, agent.talks.under_way, agent.talks.listening) == ([], {}, {})


def test_a_message_of_no_use_is_named_with_what_the_node_waits_for() -> None:
    agent, _, wire = pair()
    wire.post(0, agent.start(Ask()))
    with pytest.raises(
        TypeError, match=r"no use for a 'news' .* `keeps` or `ignores`\. .*waits for Reply from the server"
    ):
        agent.receive(News(), SERVER)


def test_all_conversations_are_ended_where_they_stand_and_who_waits_is_told() -> None:
    agent, _, wire = pair()
    wire.post(0, agent.begin(agent._ask(Ask()), blocking=True))
    agent.begin(_listens(agent))
    agent.end()
    assert (agent.talks.under_way, agent.talks.open, agent.talks.listening) == ({}, {}, {})
    assert not agent.waiting
    wire.settle()
    assert agent.log == []


async def _listens(node: Talks) -> None:
    await node.hear(News)


def test_patience_is_measured_from_the_last_of_three_silences() -> None:
    agent, _, wire = pair(patience=50.0)
    wire.post(0, agent.start(Ask()))
    for time in (0.0, 10.0, 20.0):
        wire.now = time
        wire.post(0, agent.on_timer(Silence(about=SERVER)))
    for expected in ([], [], ["silent"]):
        wire.ring()
        assert agent.log == expected
    assert wire.now == 70.0


def test_a_decline_is_not_answered() -> None:
    agent, _, _ = pair()
    assert agent.receive(Declined(), SERVER) == []


class Thorough(Talker):
    """Does several things at once."""

    ignores = (Reply,)

    @on(Silence)
    def wonder(self, silence: Silence, source: Address) -> None:
        self.log.append("silence")

    @on(Call)
    def ask_on_call(self, call: Call, source: Address) -> None:
        self.begin(self._ask(Ask(number=1)))  # what it sends leaves with the answer to this call

    @lost(News)
    async def mourn(self, news: News, source: Address) -> None:
        await self.hear(News)

    async def hear_and_tell(self) -> None:
        assert list(self.blocked_on) == []  # it does not wait yet
        try:
            await self.hear(News)
            self.tell(SERVER, News(number=5))
            await self.gather(Ask(), reply=Reply, to=[])
            self.log.append("nobody to wait for")
            await self.hear(News)
        finally:
            self.log.append("ended")


def test_a_conversation_from_its_first_step_to_its_end() -> None:
    agent = Thorough(context(0, 1, attempts=0))
    assert agent.begin(agent.hear_and_tell()) == []
    with pytest.raises(TypeError, match="in a conversation that begins with"):
        agent.ask(SERVER, Ask(), reply=Reply)  # type: ignore[unused-awaitable]
    ((_, message),) = agent.receive(News(), SERVER)
    assert (message.answers, agent.log) == (0, ["nobody to wait for"])
    agent.end()
    assert agent.log[1:] == ["ended"]
    agent.undelivered(message, SERVER)
    assert list(agent.blocked_on)
    assert not agent.waiting


def test_what_is_begun_while_a_message_is_handled_is_sent_with_its_outbox() -> None:
    agent = Thorough(context(0, 1))
    ((_, message),) = agent.receive(Call(), SERVER)
    assert isinstance(message, Ask)
    agent.on_timer(Silence(about=SERVER))
    assert agent.log == []  # it is patient, and does not wonder
    agent.end()
    assert agent.on_timer(Silence(about=SERVER)) == []
    assert agent.log == ["silence"]
    ((_, reply),) = Centre(context(SERVER, 1)).receive(Ask(), 0)
    assert reply.answers == 0  # nobody has asked


def test_outcomes_do_not_change_and_marks_have_names() -> None:
    with pytest.raises(FrozenInstanceError):
        Unanswered("silent").reason = "declined"  # type: ignore[misc]
    with pytest.raises(TypeError, match="positional"):
        late(News, True)  # type: ignore[misc]
    with pytest.raises(TypeError, match="positional"):
        on(News, True)  # type: ignore[misc]
    agent, _, _ = pair()
    with pytest.raises(TypeError, match="positional"):
        agent.gather(None, News)  # type: ignore[misc,unused-awaitable]
    with pytest.raises(TypeError, match="positional"):
        agent.begin(None, True)  # type: ignore[misc,arg-type]
    with pytest.raises(TypeError, match="positional"):
        agent.ask(SERVER, Ask(), Reply)  # type: ignore[misc,call-arg,unused-awaitable]
    assert not Unanswered("silent")
    agent.begin(_gathers_and_asks(agent))
    assert vars(Declined)["kind"] == "declined"
    assert Declined() != Declined()


async def _gathers_and_asks(node: Talks) -> None:
    await node.gather(None, reply=News, to=[])
    await node.ask(SERVER, Ask(), reply=Reply)


def test_a_node_that_talks_may_have_other_bases_with_parameters() -> None:
    class Named:
        def __init_subclass__(cls, name: str, **keywords: str) -> None:
            super().__init_subclass__(**keywords)
            cls.name = name  # type: ignore[attr-defined]

    class Both(Talker, Named, name="both"):
        pass

    assert Both.name == "both"  # type: ignore[attr-defined]


def test_after_something_was_heard_a_message_to_all_continues_no_round() -> None:
    class Once(Centre):
        async def rounds(self) -> None:
            await self.gather(Call(), reply=Reply, quorum=0, timeout=1.0)
            self.tell(ALL_AGENTS, News(number=1))
            await self.hear(News)
            self.tell(ALL_AGENTS, News(number=2))

    server = Once(context(SERVER, 1))
    wire = Wire(server)
    wire.post(SERVER, server.begin(server.rounds()))
    wire.ring()
    outbox = server.receive(News(), 0)
    assert [message.answers for _, message in outbox] == [0]


def test_pulls_in_a_message_between_agents_are_nobodys_to_count() -> None:
    agent = Hearer(context(0, 2))
    assert agent.receive(News(pulls=2, number=1), 1) == []
    assert (agent.log, agent.unshared) == ([1], 0)


def test_pulls_that_a_server_tells_of_are_nobodys_to_count_and_who_asks_in_vain_is_declined() -> None:
    class Silent(Centre):
        @on(Ask)
        def reply(self, ask: Ask, agent: Address) -> None:  # type: ignore[override]
            self.tell(agent, News(pulls=2))

    agent, server = Hearer(context(0, 1)), Silent(context(SERVER, 1))
    wire = Wire(agent, server)
    wire.post(0, agent.start(Ask()))
    wire.settle()
    assert agent.log == [0, None, "declined"]
    assert agent.unshared == 0


def test_what_is_told_is_not_answered() -> None:
    class Keeper(Centre):
        @on(News)
        def keep(self, news: News, agent: Address) -> None:
            self.heard.append((news, agent))

    agent, server = Hearer(context(0, 1)), Keeper(context(SERVER, 1))
    wire = Wire(agent, server)
    agent.tell(SERVER, News())
    wire.post(0, agent.sent())
    wire.settle()
    assert len(server.heard) == len(wire.sent) == 1


def test_handlers_of_two_kinds_do_not_end_each_others_conversations() -> None:
    class Two(Talker):
        @on(Call)
        async def one(self, call: Call, source: Address) -> None:
            await self.hear(News)

        @on(Ask)
        async def two(self, ask: Ask, source: Address) -> None:
            await self.hear(News)

    agent = Two(context(0, 1))
    agent.receive(Call(), SERVER)
    agent.receive(Ask(), SERVER)
    agent.receive(Ask(), SERVER)
    assert len(agent.talks.under_way) == 2
    assert not agent.waiting


def test_what_a_conversation_hears_is_not_handled_besides() -> None:
    class Both(Centre):
        @on(News)
        def note(self, news: News, agent: Address) -> None:
            self.heard.append((news, agent))

    server = Both(context(SERVER, 1))
    server.begin(_listens(server), blocking=True)  # of no effect: a server takes no turns
    server.receive(News(), 0)
    assert (server.heard, server.talks.under_way) == ([], {})
    server.receive(News(), 0)
    assert len(server.heard) == 1


class Keeper(Talker):
    """Does not forget its conversations: it may have one from its beginning."""

    def main(self) -> Any:
        return None


def test_a_client_with_nothing_under_way_keeps_the_number_of_its_last_message_alone() -> None:
    """What it sends then is what one sends that keeps all."""
    sent = []
    for kind, kept in ((Talker, False), (Keeper, True)):
        agent, server = kind(context(0, 1)), Centre(context(SERVER, 1))
        wire = Wire(agent, server)
        for number in range(3):
            wire.post(0, agent.start(Ask(number=number)))
            assert agent._talks is not None
            wire.settle()
            assert (agent._talks is not None) == kept
        assert [answer.number for answer in agent.log] == [0, 1, 2]
        sent.append([(packet.source, packet.message.talk, packet.message.answers) for packet in wire.sent])
    assert sent[0] == sent[1]
    assert len({talk for _, talk, _ in sent[0]}) == 6
