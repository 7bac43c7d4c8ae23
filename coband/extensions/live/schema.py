"""What hub and stations say to each other: every kind of frame with the types of its fields.

Whatever comes in is used after ``frames`` has found every field of its declared type and within its bounds. Whether a
frame fits what was said before is the business of who takes it.
"""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, FailFast, Field

from coband import SERVER
from coband.extending import trace

ROWS, DETAILS = 2000, 1 << 18
"""Events in one frame, and letters of their details from which on no more are added to it."""
LONGEST_NAME, LONGEST_TEXT = 200, 100_000


def _printable(text: str) -> str:
    """A text as a terminal may show it: what would move its cursor or change its colours is replaced."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)


T = TypeVar("T")
Many = Annotated[tuple[T, ...], FailFast()]
Node = Annotated[int, Field(ge=SERVER, lt=1 << 31)]
Count = Annotated[int, Field(ge=0, lt=1 << 53)]
Number = Annotated[int, Field(ge=-1, lt=1 << 62)]
Code = Annotated[int, Field(ge=-1, lt=1 << 15)]
Version = Annotated[int, Field(ge=-1, lt=1 << 31)]
Time = Annotated[float, Field(ge=0)]
Never = Annotated[float, Field(ge=0, allow_inf_nan=True)]
Due = tuple[Never, Number, Number]
Name = Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(_printable)]
Text = Annotated[str, Field(max_length=LONGEST_TEXT), AfterValidator(_printable)]
Place = Annotated[str, Field(max_length=1 << 12, pattern=r"^[^\x00]*$")]
AnyFloat = Annotated[float, Field(allow_inf_nan=True)]
Measure = AnyFloat | Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)] | bool
Measures = Annotated[dict[Name, Measure], Field(max_length=1000)]
OwnMeasures = Annotated[dict[Name, Measure | None], Field(max_length=1000)]

# --- between the transports of two processes; times are by the clock of who sends them


class Copy(NamedTuple):
    """A copy of a message."""

    source: Node
    destination: Node
    number: Count
    id: Number
    send: Number
    attempts: Count
    time: Time
    message: bytes


class Ack(NamedTuple):
    """A message has arrived; to its sender."""

    source: Node
    destination: Node
    number: Count
    time: Time


class Skip(NamedTuple):
    """The sender of a message wants to give it up."""

    source: Node
    destination: Node
    number: Count
    time: Time


class Skipped(NamedTuple):
    """The answer to that: whether the message has arrived."""

    source: Node
    destination: Node
    number: Count
    has: bool
    time: Time


class Silence(NamedTuple):
    """A message was given up, in the event ``cause``; to its receiver."""

    source: Node
    destination: Node
    cause: Number
    time: Time


Settling = Ack | Skip | Skipped | Silence
Passing = Copy | Settling

# --- from a station


class Hello(NamedTuple):
    """Who connects."""

    code: Name
    name: Name
    agents: Annotated[int, Field(ge=1)] | None


class Ping(NamedTuple):
    """What time is it?"""


class Ready(NamedTuple):
    """It has made its nodes."""


class Status(NamedTuple):
    """How far it is: frames handled and sent, its next event (`Clock.next_due`), and pulls."""

    handled: Count
    sent: Count
    due: Due
    pulls: Count


class Failed(NamedTuple):
    """It cannot go on."""

    how: Literal["violated", "failed"]
    text: Text


Row = tuple[
    Number,
    Time,
    Annotated[int, Field(ge=0, lt=len(trace.EVENTS))],
    Node,
    Annotated[int, Field(ge=trace.NOBODY, lt=1 << 31)],
    Number,
    Number,
    Code,
    Annotated[int, Field(ge=0, lt=1 << 40)],
    Code,
    Version,
    Version,
    float,
    Code,
    str | None,
]
"""The columns of a `core.records.trace.Row`."""


class Rows(NamedTuple):
    """Events, in order."""

    rows: Annotated[Many[Row], Field(max_length=ROWS)]


class Accounts(NamedTuple):
    """A ledger: (kind, direction, numbers of an ``Entry``), (round, scalars), scalars of each agent, and the rest;
    ``carried``: its scalars and bits, none where all scalars cost the same."""

    kinds: Many[tuple[Name, Literal["up", "down", "peer"], Count, Count, Count, Count]]
    rounds: Many[tuple[Version, Count]]
    uplink: Many[Count]
    downlink: Many[Count]
    peer: Many[Count]
    repeated: tuple[Count, Count, Count, Count]
    carried: Many[tuple[str, Name, Many[Count], Many[Count], Count]]


class Pulls(NamedTuple):
    """Each pull's agent, how many pulls it is, time, regret, reward, and the event after which it was complete."""

    agents: Many[Count]
    pulls: Many[Count]
    times: Many[Time]
    regrets: Many[float]
    rewards: Many[float]
    marks: Many[Number]


class AgentFacts(NamedTuple):
    """What is known of an agent in the end."""

    agent: Count
    rounds: Count
    unshared: Count
    answer: Number | None
    stalled: Count
    report: Measures
    own: OwnMeasures
    hindsight: Measures
    warnings: Many[Text]
    closest: AnyFloat | None


class Report(NamedTuple):
    """All that the result needs but for the trace, up to the rows before it; ``copies``: the numbers of each kind's
    ``Copies``; ``spent``: of privacy (`core.wire.noising.Noising.noted`); ``steps``: of virtual time, each with the
    events before it. Of pulls, lateness, transits, rounds and steps what is new; ``agents``: at the end."""

    names: Many[Name]
    ledger: Accounts
    copies: dict[Name, tuple[Count, Count, Count, Count, Count, Count]]
    pulls: Pulls
    outstanding: Count
    last_delivery: Time
    bytes: Count
    lateness: Many[float]
    transits: Many[float]
    agents: Many[AgentFacts]
    spent: Many[tuple[Never, Node, Time]]
    clipped: Many[Count]
    steps: Many[tuple[Count, Count]]


# --- from the hub


class Task(NamedTuple):
    """The job; see `experiments.runs.job.Job`."""

    id: Count
    label: str
    algorithm: str
    replication: Count
    seed: Annotated[int, Field(ge=0)]
    trace: str
    entry: str | None


class Welcome(NamedTuple):
    """What a station is to run, and how."""

    scenario: str
    base: Place
    task: Task
    origin: Annotated[int, Field(ge=1, lt=1 << 20)]
    agents: Annotated[Many[Count], Field(min_length=1)]
    speed: Annotated[float, Field(ge=0, le=3600)]
    largest: Annotated[int, Field(ge=1, lt=1 << 31)]


class Refused(NamedTuple):
    """The station may not take part, or not any longer."""

    why: Text


class Pong(NamedTuple):
    """What time it is."""

    time: float


class Start(NamedTuple):
    """The run has begun, at a time of the hub's event loop."""

    epoch: float


class Advance(NamedTuple):
    """Virtual time goes on: it is ``time``, in the run's ``step``, and what is due before ``until`` may happen."""

    time: Time
    step: Annotated[int, Field(ge=1, lt=1 << 30)]
    until: Due


class Gone(NamedTuple):
    """Agents of a station that was lost take no further part."""

    agents: Annotated[Many[Count], Field(min_length=1)]
    time: Time


class Finish(NamedTuple):
    """Nobody has anything left to do: report the rest."""


class Bye(NamedTuple):
    """The run has ended."""


class Over(NamedTuple):
    """The run has ended too early."""

    why: Text


Outside = Hello | Ping | Ready | Status | Welcome | Refused | Pong | Bye | Over
Within = Failed | Rows | Report | Start | Advance | Gone | Finish
Frame = Passing | Outside | Within
Kinds = tuple[type[Frame], ...]
PASSING: Kinds = (Copy, Ack, Skip, Skipped, Silence)
FROM_STATION: tuple[Kinds, Kinds] = ((Hello, Ping, Ready, Status), (*PASSING, Failed, Rows, Report))
FROM_HUB: tuple[Kinds, Kinds] = ((Welcome, Refused, Pong, Bye, Over), (*PASSING, Start, Advance, Gone, Finish))
"""What each end may send, outside of sessions and within."""
