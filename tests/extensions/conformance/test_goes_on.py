"""Each wrong protocol fails the case for what is wrong with it, and only where that can be seen."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from coband.agents.exploration.co_kernel_fc import ALGORITHM as CO_KERNEL_FC
from coband.agents.graph.push_gossip_kernel_ucb import ALGORITHM as PUSH_GOSSIP
from coband.agents.graph.push_gossip_kernel_ucb import PushGossipKernelUCB
from coband.agents.kernel.duets import ALGORITHM as DUETS
from coband.agents.linear.fed_lin_ucb import FedLinUCB
from coband.extensions.conformance import NonConformance, Vacuous, kit
from coband.extensions.conformance.liveness import KINDS
from coband.server.kernel.duets import DuetsServer
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.nodes.message import Message, payload
from coband.simulator.core.nodes.node import ALL_AGENTS, SERVER, Address, NodeContext, Outbox
from tests.every import every
from tests.extensions.conformance.toys import Adder, Tally, Teller, toy

Install = Callable[[Algorithm], str]


class DeafToLosses(Teller):
    """After an upload that was given up it goes on waiting for the answer."""

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        self.unshared += message.pulls
        return []


class Faithful(Teller):
    """Waits for an answer that was given up."""

    def missed(self, source: Address) -> Outbox | None:
        return None


class BlockedFaithful(Faithful):
    """Takes no turn meanwhile."""

    blocking = True


class Wasteful(Teller):
    """Forgets the pulls of an upload that was given up."""

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        return self.settle()


class Complaint(Tally):
    """A tally that carries more than one number."""

    lost: float = payload()


class Wordy(Teller):
    """Tells the server what was given up."""

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        super().undelivered(message, recipient)
        return [(SERVER, Complaint(total=0, lost=message.pulls))]


class Offended(Teller):
    """Speaks four times less once an upload was given up."""

    offended = False

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        self.offended = True
        return super().undelivered(message, recipient)

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        if self.offended and self.unshared < 15:
            self.unshared += 1
            return []
        return super().observe(arms, arm, reward)


class ThreeStrikes(Teller):
    """Goes on alone when three uploads were given up."""

    strikes = 0

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        self.strikes += 1
        return super().undelivered(message, recipient) if self.strikes < 3 else self._alone(message)

    def _alone(self, message: Message) -> Outbox:
        self.unshared += message.pulls
        return []


class Brittle(Teller):
    """Fails when an upload was given up."""

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        raise RuntimeError("what now?\nnobody knows")


class Impatient(Teller):
    """Takes no answer that comes more than five turns after the question, and never asks again."""

    turns = 0

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        self.turns = self.turns + 1 if self.asking else 0
        return super().observe(arms, arm, reward)

    def receive(self, message: Message, source: Address) -> Outbox:
        return super().receive(message, source) if self.turns <= 5 else []


class Blocking(Teller):
    """Takes no turn before the answer is there."""

    blocking = True


class Assembler(Adder):
    """Answers all agents once it has heard of each of them, however long that takes."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.heard: set[Address] = set()

    def receive(self, message: Message, source: Address) -> Outbox:
        super().receive(message, source)
        self.heard.add(source)
        if len(self.heard) < self.context.agents:
            return []
        self.heard.clear()
        return [(ALL_AGENTS, Tally(total=self.total))]


class QuietDuetsServer(DuetsServer):
    """Ends the exchange and tells nobody."""

    def close(self) -> None:
        self.closed = True

    def after_the_end(self, message: Message, agent: Address) -> None:
        return None


class Unforgiving(PushGossipKernelUCB):
    """Never writes again to a neighbour that it could not reach once."""

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        self.neighbours = tuple(other for other in self.neighbours if other != recipient)
        return []


SILENT = r"after .*, from [\d.]+ on, silence or nearly so: .*"
WAITS = r"after .*, agent \d( and agent \d)? waits? forever"
LOST = "the loss of the 'tally' from agent 0 to the server at 2, "
WRONG: dict[str, tuple[Algorithm, dict[str, str]]] = {
    "takes a loss for an answer to come": (
        toy(DeafToLosses),
        {
            "lost": f"after {LOST}from 13 on, silence or nearly so: agent 0 to the server \\(0 of 24 messages\\), "
            "the server to agent 0 \\(0 of 24 messages\\)",
            "cut_off": SILENT,
        },
    ),
    "awaits an answer that is lost": (toy(Faithful), {"lost": SILENT, "cut_off": SILENT}),
    "awaits it without pulling": (toy(BlockedFaithful), {"lost": WAITS, "cut_off": WAITS}),
    "pulls that nobody has": (
        toy(Wasteful),
        dict.fromkeys(("lost", "cut_off"), "the server has applied .* that must be the 180 pulls of the run"),
    ),
    "sizes after a loss": (
        toy(Wordy),
        dict.fromkeys(
            ("lost", "cut_off"), "a 'tally' message that goes up has 2 scalars, but Algorithm.messages says 1"
        ),
    ),
    "speaks less": (toy(Offended), {"lost": r"\(3 of 24 messages\)", "cut_off": SILENT}),
    "gives up after three losses": (toy(ThreeStrikes), {"cut_off": SILENT}),
    "fails": (
        toy(Brittle),
        dict.fromkeys(
            ("lost", "cut_off"), r"the run fails with RuntimeError: what now\? \(test_goes_on.py:\d+, in undelivered\)"
        ),
    ),
    "takes no late answer": (toy(Impatient), {"late": SILENT}),
    "waits for all": (toy(Blocking, Assembler), {"lost": WAITS, "cut_off": WAITS, "down": WAITS}),
    "waits for all, and says when an agent stays down": (
        toy(Blocking, Assembler, waits_for_all="1"),
        {"lost": WAITS, "cut_off": WAITS},
    ),
    "says that it waits, and goes on": (
        toy(Teller, waits_for_all="period > 0"),
        {"down": r"^Needs\.waits_for_all\(='period > 0'\) holds, but nobody waits: drop it$"},
    ),
    "one ends without the others": (toy(DeafToLosses, ends_together=True), {"lost": SILENT, "cut_off": SILENT}),
    "ends and tells nobody": (
        replace(DUETS, server=f"{__name__}:QuietDuetsServer"),
        {"lost": WAITS},  # who is cut off, and those who miss it, run out of patience; the wait in "down" is declared
    ),
    "ends together without saying so": (
        replace(CO_KERNEL_FC, needs=replace(CO_KERNEL_FC.needs, ends_together=False)),
        {"lost": SILENT, "cut_off": SILENT, "late": "too few to see", "down": "too few to see"},
    ),
    "never forgives a neighbour": (replace(PUSH_GOSSIP, agent=Unforgiving), {"lost": SILENT, "cut_off": SILENT}),
}


def goes_on(name: str, **config: int) -> dict[str, kit.Case]:
    return {case.fault: case for case in kit.cases(name, config) if isinstance(case, kit.GoesOn)}


@every("wrong", WRONG)
def test_a_wrong_protocol_fails_for_what_is_wrong_with_it(wrong: str, install: Install) -> None:
    algorithm, expected = WRONG[wrong]
    found = {}
    for kind, case in goes_on(install(algorithm)).items():
        try:
            case.check()
        except (NonConformance, Vacuous) as complaint:
            found[kind] = str(complaint)
    assert found.keys() == expected.keys()
    for kind, sentence in expected.items():
        assert re.search(sentence, found[kind]), found[kind]


@pytest.mark.parametrize("agent", [Teller, Blocking])
def test_a_right_protocol_passes_every_case_and_says_what_was_checked(agent: type[Teller], install: Install) -> None:
    name = install(toy(agent))
    for case in kit.cases(name):
        case.check()
    assert goes_on(name).keys() == KINDS.keys()
    assert str(goes_on(name)["cut_off"].check()).splitlines()[1] == (
        "agent 2 was cut off from 16.2 to 31.2 (a few attempts): agent 0 to the server, agent 1 to the server, "
        "agent 2 to the server, the server to agent 0, the server to agent 1, the server to agent 2"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_who_says_too_little_is_no_case(kind: str, install: Install) -> None:
    with pytest.raises(Vacuous, match="broken goes on after a fault; give parameters with which it communicates more"):
        goes_on(install(toy()), period=400)[kind].check()


def test_a_run_is_made_longer_until_messages_are_many(install: Install) -> None:
    report = goes_on(install(toy()), period=20)["late"].check()
    assert str(report).startswith("720 turns; messages after the fault:")


def test_statistics_that_are_thrown_away_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that counts its pulls again after a loss, and has forgotten what they were."""
    case = kit.GoesOn("fed_lin_ucb", {"threshold": 0.05}, "cut_off")
    assert case.check()
    monkeypatch.setattr(FedLinUCB, "_take_back", lambda self, upload: None)
    with pytest.raises(NonConformance, match=r"upload\.W of agent 2 was given up, and no later one has what was in it"):
        case.check()
