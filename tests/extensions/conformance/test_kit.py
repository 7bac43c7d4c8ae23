"""The kit finds what is planted: each broken algorithm is caught, with a sentence that says what is wrong."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from coband.agents.kernel.one_kernel_ucb import ALGORITHM, OneKernelUCB
from coband.agents.linear.rclb import ALGORITHM as RCLB
from coband.extensions.conformance import Case, NonConformance, Vacuous, cases, kit
from coband.server.kernel.one_kernel_ucb import OneKernelUCBServer
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, ClosedForm
from coband.simulator.core.formulas import FormulaError
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import SERVER, Address, Outbox, Server
from coband.simulator.core.records.invariants import InvariantViolation
from tests.extensions.conformance.toys import Adder, Tally, Teller, toy

CALLS = count()


class ForgetfulServer(OneKernelUCBServer):
    """Does not say what it has taken in."""

    def receive(self, message: Message, source: Address) -> Outbox:
        outbox = super().receive(message, source)
        self.applied = 0
        return outbox


class RestlessAgent(OneKernelUCB):
    """Chooses by something that is not of this run."""

    def choose(self, arms: ArmSet) -> int:
        arm = super().choose(arms)
        return arm if next(CALLS) % 7 else (arm + 1) % len(arms)


class StuckAgent(OneKernelUCB):
    """Waits for an answer that never comes."""

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        self.waiting = True
        return super().observe(arms, arm, reward)


class GossipingAgent(OneKernelUCB):
    """Learns from an object that should only save work."""

    def choose(self, arms: ArmSet) -> int:
        heard = self.context.sharing.get("gossip", dict[int, int])
        heard[0] = heard.get(0, 0) + 1
        return heard[0] % len(arms)

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        self.unshared += 1
        return []


class ChattyServer(OneKernelUCBServer):
    """Reports a number that nobody has declared."""

    def report(self) -> dict[str, float | int]:
        return {"gossip": 3}


def check_all(found: list[Case]) -> None:
    for case in found:
        case.check()


def server(name: str) -> str:
    return f"tests.extensions.conformance.test_kit:{name}"


UP, DOWN, *OTHERS = ALGORITHM.messages
BROKEN: dict[str, tuple[Algorithm, str]] = {
    "forgetful": (replace(ALGORITHM, server=server("ForgetfulServer")), "applied 0 pulls and agents hold 0"),
    "restless": (replace(ALGORITHM, agent=RestlessAgent), "or draws from other streams than its own: its twin"),
    "stuck": (replace(ALGORITHM, agent=StuckAgent), "turns were taken, not"),
}
SAID_WRONGLY: dict[str, tuple[Algorithm, str]] = {
    "size": (
        replace(ALGORITHM, messages=(replace(UP, size="d + 2"), DOWN, *OTHERS)),
        r"a 'point' message that goes up has 4 scalars, but Algorithm.messages says d \+ 2 = 5 scalars \(d = 3\)",
    ),
    "no formula": (
        replace(ALGORITHM, messages=(replace(UP, size="42 kangaroos"), DOWN, *OTHERS)),
        "'42 kangaroos' is not a formula",
    ),
    "unknown quantity": (
        replace(ALGORITHM, messages=(replace(UP, size="kangaroos"), DOWN, *OTHERS)),
        "uses 'kangaroos'; there",
    ),
    "silence": (replace(ALGORITHM, messages=(UP, *OTHERS)), "a 'point' message that goes down was sent, of which"),
    "never": (replace(ALGORITHM, messages=(UP, replace(DOWN, when="alpha > 9"), *OTHERS)), "was sent, of which"),
    "total": (
        replace(ALGORITHM, counts=(ClosedForm("uplink_scalars", "T*d"),)),
        r"the run counts uplink_scalars = 240, but Algorithm.counts says T\*d = 180 \(T = 60, d = 3\)",
    ),
    "round": (
        replace(ALGORITHM, counts=(ClosedForm("downlink_scalars", "d", each="round"),)),
        "round 1 counts downlink_scalars = 8, but Algorithm.counts says d = 3",
    ),
    "round without": (
        replace(ALGORITHM, counts=(ClosedForm("peer_scalars", "d", each="round"),)),
        "round 1 counts peer_scalars = 0, but Algorithm.counts says d = 3",
    ),
    "count": (replace(ALGORITHM, counts=(ClosedForm("hopes", "0"),)), "names 'hopes'; there is"),
    "metric": (
        replace(ALGORITHM, server=server("ChattyServer")),
        r"ChattyServer reports 'gossip', which nobody declares: add Metric\('gossip', unit, meaning\) to "
        "Algorithm.metrics of broken",
    ),
}


@pytest.mark.parametrize("planted", BROKEN)
def test_a_broken_algorithm_is_caught(planted: str, install: Callable[[Algorithm], str]) -> None:
    algorithm, sentence = BROKEN[planted]
    found = cases(install(algorithm))
    with pytest.raises((NonConformance, InvariantViolation), match=sentence):
        check_all(found)


@pytest.mark.parametrize("planted", SAID_WRONGLY)
def test_what_is_declared_wrongly_is_caught(planted: str, install: Callable[[Algorithm], str]) -> None:
    algorithm, sentence = SAID_WRONGLY[planted]
    (case,) = [case for case in cases(install(algorithm)) if str(case).endswith("one_at_a_time-as_declared")]
    with pytest.raises((NonConformance, FormulaError), match=sentence):
        case.check()


def test_a_closed_form_of_whole_phases_alone_is_caught(install: Callable[[Algorithm], str]) -> None:
    """The kit ends runs also when only some agents have sent what belongs to a phase."""
    name = install(replace(RCLB, counts=(ClosedForm("messages", "2*N*rounds"),)))
    (case,) = [case for case in cases(name, {"C": 0.02}) if str(case).endswith("renewal-as_declared")]
    with pytest.raises(NonConformance, match=r"the run counts messages = 8, but .* 2\*N\*rounds = 6"):
        case.check()


@pytest.mark.parametrize(
    ("agent", "sentence"),
    [(GossipingAgent, "shared objects carry knowledge"), (RestlessAgent, "the same run twice has two fingerprints")],
)
def test_a_run_is_the_same_again_and_without_sharing(
    agent: type[OneKernelUCB], sentence: str, install: Callable[[Algorithm], str]
) -> None:
    (case,) = [case for case in cases(install(replace(ALGORITHM, agent=agent))) if "determ" in str(case)]
    with pytest.raises(NonConformance, match=sentence):
        case.check()


class Unaccountable(Adder):
    """Cannot say whether its total is that of the uploads."""

    discrepancies = Server.discrepancies


class Careless(Adder):
    """Says that nothing is wrong without a look."""

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        return iter(())


@pytest.mark.parametrize(
    ("server", "sentence"),
    [
        (Unaccountable, r"Unaccountable takes in pulls \(Message.pulls\) and has no discrepancies\(uploads\): let it"),
        (Careless, "Careless.discrepancies says nothing when an upload is left out: does it look at the statistics"),
    ],
)
def test_a_server_accounts_for_the_pulls_that_it_takes_in(
    server: type[Server], sentence: str, install: Callable[[Algorithm], str]
) -> None:
    (case,) = [case for case in cases(install(toy(server=server))) if str(case).endswith("-rounds-as_declared")]
    with pytest.raises(NonConformance, match=sentence):
        case.check()


class Wordless(Teller):
    """Does not say of how many pulls its tallies are."""

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        self.unshared += 1
        return [(SERVER, Tally(total=1.0))]


def test_uploads_say_of_how_many_pulls_they_are(install: Callable[[Algorithm], str]) -> None:
    (case,) = [case for case in cases(install(toy(Wordless))) if str(case).endswith("-rounds-as_declared")]
    with pytest.raises(NonConformance, match=r"^no message carries pulls, .*; give uploads pulls=self\.unshared$"):
        case.check()


def vacuous(found: list[Case]) -> dict[str, str]:
    """The cases that say nothing, and why."""
    reasons = {}
    for case in found:
        try:
            case.check()
        except Vacuous as reason:
            reasons[str(case).removeprefix("broken-period-")] = str(reason)
    return reasons


@pytest.mark.parametrize("declared", [toy().messages, ()])
def test_cases_without_a_message_say_nothing(declared: Any, install: Callable[[Algorithm], str]) -> None:
    found = cases(install(replace(toy(), messages=declared)), {"period": 10_000})
    reasons = vacuous(found)
    assert reasons.keys() == {str(case).removeprefix("broken-period-") for case in found} - {"deterministic"}
    assert reasons["rounds-heavy"] == (
        "broken sends nothing in 45 turns: give parameters with which it communicates more often"
    )
    assert reasons["goes_on-lost"].startswith("0 messages in 1440 turns are too few to see whether broken goes on")


class Once(Teller):
    """Tells the server of its first pulls alone."""

    def settle(self) -> Outbox:
        self.asking = True
        return []


def test_a_lossy_network_that_loses_nothing_says_nothing(
    install: Callable[[Algorithm], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(kit.NETWORKS, "lossy", {"loss": 1e-9})
    found = [case for case in cases(install(toy(Once))) if "lossy" in str(case)]
    assert set(vacuous(found).values()) == {"with none of 10 seeds a message is lost or doubled: 6 are too few"}


def test_an_algorithm_that_sends_nothing_has_the_cases_that_say_something(install: Callable[[Algorithm], str]) -> None:
    quiet = replace(toy(), counts=(ClosedForm("scalars", "0", "period > 999"),))
    names = [str(case).removeprefix("broken-period-") for case in cases(install(quiet), {"period": 1000})]
    kinds = ("one_at_a_time", "rounds", "renewal")
    assert names == [
        *(f"{kind}-{network}" for network in ("ideal", "faulty") for kind in kinds),
        *(f"{kind}-as_declared" for kind in kinds),
        "deterministic",
    ]
    assert len(cases("broken", {"period": 2})) == 29


def test_a_sound_algorithm_passes(install: Callable[[Algorithm], str]) -> None:
    found = cases(install(ALGORITHM), {}, {"alpha": 0.5})
    assert len({str(case) for case in found}) == len(found) == 2 * (len(kit.NETWORKS) * 3 + 3 + 1 + 4)
    for case in found[:2]:
        case.check()
