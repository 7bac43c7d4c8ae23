"""Whatever is lost, doubled or late, each question has one outcome, and is undone if it never came."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from coband.simulator.core.conversations import Line, Unanswered, late, on
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import SERVER, Address, NodeContext
from tests.core.conversations.talking import ALL_AGENTS, Ask, Call, Centre, News, Reply, Talker, Wire, context

AGENTS = 3
MOST_STEPS = 120
WAITS: list[dict[str, Any]] = [{}, {"quorum": 2, "timeout": 5.0}, {"together": True}]


class Partner(Talker):
    """Asks, is asked back, and takes part in rounds."""

    ignores = (News,)
    rounds_heard, unshared = 0, MOST_STEPS

    async def dialogue(self, number: int) -> None:
        """A question, whose answer asks for another one."""
        first = await self.ask(SERVER, Ask(number=number), reply=Reply, attempts=0)
        if isinstance(first, Unanswered):
            self.log.append((number, first.reason))
            return
        question = Ask(number=1000 + number)
        second = await self.ask(SERVER, question, reply=News, undo=self.undone.append)
        self.log.append((number, second.reason if isinstance(second, Unanswered) else second.number))

    @on(Call)
    async def take_part(self, call: Call, server: Address) -> None:
        """A round."""
        answer = Reply(round=call.round, pulls=1)
        news = await self.ask(SERVER, answer, reply=News, undo=self.undone.append)
        self.rounds_heard += isinstance(news, News)


class Room(Centre):
    """Has dialogues one after the other, and rounds in between."""

    ignores = (Ask,)

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.line = Line(1)
        self.rounds_held: list[tuple[list[Address], dict[Address, Any]]] = []
        self.late: list[Message] = []

    @on(Ask)
    async def reply(self, ask: Ask, agent: Address) -> None:  # type: ignore[override]
        await self.enter(self.line)
        second = await self.ask(agent, Reply(number=ask.number), reply=Ask)
        if isinstance(second, Ask):
            self.tell(agent, News(number=second.number))

    async def hold(self, number: int, how: dict[str, Any]) -> None:
        """One round."""
        answers = await self.gather(Call(round=number), reply=Reply, **how)
        self.rounds_held.append((list(answers), answers.left))
        self.tell(ALL_AGENTS, News(round=number))

    @late(Reply)
    def keep(self, reply: Reply, agent: Address) -> None:
        self.late.append(reply)


def play(choices: list[int], wire: Wire, agents: list[Partner], server: Room, doubling: bool) -> list[int]:
    """One step for each choice; how many dialogues each agent has begun, and how many rounds the server."""
    begun = [0] * (AGENTS + 1)
    for choice in choices:
        steps = ["dialogue", "round"]
        steps += ["deliver", "deliver", "lose", *(["double"] if doubling else [])] if wire.packets else []
        steps += ["ring"] if wire.timers else []
        place, step = divmod(choice, len(steps))
        if steps[step] == "dialogue":
            index = place % AGENTS
            begun[index] += 1
            wire.post(index, agents[index].begin(agents[index].dialogue(begun[index])))
        elif steps[step] == "round":
            begun[-1] += 1
            wire.post(SERVER, server.begin(server.hold(begun[-1], WAITS[place % len(WAITS)])))
        elif steps[step] == "ring":
            wire.ring(place % len(wire.timers))
        elif steps[step] == "lose":
            wire.lose(first(wire, place))
        else:
            wire.deliver(first(wire, place), keep=steps[step] == "double")
    wire.settle()
    return begun


def first(wire: Wire, place: int) -> int:
    """The oldest message of some pair of nodes, between which the transport keeps the order."""
    pairs = [(packet.source, packet.to) for packet in wire.packets]
    return pairs.index(pairs[place % len(pairs)])


@settings(max_examples=400, deadline=None)
@given(choices=st.lists(st.integers(0, 10_000), min_size=5, max_size=MOST_STEPS), doubling=st.booleans())
def test_each_question_has_one_outcome(choices: list[int], doubling: bool) -> None:
    agents = [Partner(context(index, AGENTS)) for index in range(AGENTS)]
    server = Room(context(SERVER, AGENTS))
    wire = Wire(*agents, server)
    begun = play(choices, wire, agents, server, doubling)
    came = {id(packet.message) for packet in wire.sent if packet.delivered}
    for agent, dialogues in zip(agents, begun, strict=False):
        assert sorted(number for number, _ in agent.log) == list(range(1, dialogues + 1))
        assert len(set(map(id, agent.undone))) == len(agent.undone)
        assert not came & set(map(id, agent.undone))
        assert not list(agent.blocked_on)
    assert len(server.rounds_held) == begun[-1]
    assert not any(set(answered) & set(left) for answered, left in server.rounds_held)
    assert all(set(answered) | set(left) == set(range(AGENTS)) for answered, left in server.rounds_held)
    assert not list(server.blocked_on)
    assert not server.talks.open
    taken_in = {id(packet.message) for packet in wire.sent if packet.message.pulls and packet.delivered}
    assert sum(MOST_STEPS - agent.unshared for agent in agents) == len(taken_in)
    assert doubling or server.applied == len(taken_in)
