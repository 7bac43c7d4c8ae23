"""The age of information in plain loops over the events of a trace, each as the view ``trace`` spells it.

Pulls are told apart by their number among all pulls. What a model has is a set of pulls.
"""

from collections.abc import Callable, Sequence

from coband.simulator.experiments.store.store import Event

Age = tuple[int, float | None]
Pulls = frozenset[int]


def ages(events: Sequence[Event], known: Callable[[Sequence[Event], Event], tuple[Pulls, float | None]]) -> list[Age]:
    """(pulls that it did not know of, time since the newest message behind it was sent) of each decision.

    Args:
        events: of one job.
        known: the pulls in the model of a decision, given all events before it, and when that message was sent.
    """
    found = []
    for place, event in enumerate(events):
        if event.event == "choose":
            before = events[:place]
            pulls, sent = known(before, event)
            everything = all_pulls(before)
            assert pulls <= everything
            found.append((len(everything - pulls), None if sent is None else event.time - sent))
    return found


def all_pulls(events: Sequence[Event]) -> Pulls:
    """The pulls that were made, by the number of their reward event."""
    return frozenset(event.seq for event in events if event.event == "reward")


def pulls_of(events: Sequence[Event], node: str | None, start: int = 0, end: float = float("inf")) -> Pulls:
    """The pulls of an agent whose events lie between two numbers."""
    return frozenset(e.seq for e in events if e.event == "reward" and e.node == node and start <= e.seq < end)


def alone(events: Sequence[Event], choice: Event) -> tuple[Pulls, None]:
    """Its own pulls."""
    return pulls_of(events, choice.node), None


def everything_told(events: Sequence[Event], choice: Event) -> tuple[Pulls, float | None]:
    """Every message carries the pull that it was sent after; it is in the model if it came before the turn began."""
    found, newest = set(pulls_of(events, choice.node)), None
    for event in events:
        if event.seq < (choice.cause or 0) and event.event == "deliver" and event.node == choice.node:
            pull, sent = origin(events, event)
            found.add(pull)
            newest = sent if newest is None else max(newest, sent)
    return frozenset(found), newest


def origin(events: Sequence[Event], event: Event) -> tuple[int, float]:
    """The pull that a message tells of, and when the last node but its receiver that changed it has sent it."""
    by_number = {one.seq: one for one in events}
    sent = None
    while event.event != "reward":
        if event.event == "send" and (sent is None or event.hop):
            sent = event.time
        assert event.cause is not None
        event = by_number[event.cause]
    assert sent is not None
    return event.seq, sent


def asynchronous(events: Sequence[Event], choice: Event) -> tuple[Pulls, float | None]:
    """The model of the last exchange: all uploads up to its version; own pulls since then are not in it."""
    models = [event for event in events if event.event == "model" and event.node == choice.node]
    if not models:
        return frozenset(), None
    by_number = {event.seq: event for event in events}
    found: set[int] = set()
    applied = [
        event for event in events if event.event == "apply" and (event.version or 0) <= (models[-1].version or 0)
    ]
    for event in applied:
        delivery = by_number[event.cause or 0]
        upload = by_number[delivery.cause or 0]
        found |= uploaded(events, upload, by_number)
    delivery = by_number[models[-1].cause or 0]
    return frozenset(found), by_number[delivery.cause or 0].time


def uploaded(events: Sequence[Event], upload: Event, by_number: dict[int, Event]) -> Pulls:
    """The pulls that an upload brings: its agent's between the trigger before and the one that began this exchange."""
    event = upload
    while event.event != "trigger":
        event = by_number[event.cause or 0]
    triggers = [e.seq for e in events if e.event == "trigger" and e.node == upload.node and e.seq < event.seq]
    return pulls_of(events, upload.node, max(triggers, default=0), event.seq)


def synchronous(events: Sequence[Event], choice: Event) -> tuple[Pulls, float | None]:
    """All pulls that the agents had made when they answered in the last synchronisation, and own ones since then."""
    models = [event for event in events if event.event == "model" and event.node == choice.node]
    if not models:
        return pulls_of(events, choice.node), None
    by_number = {event.seq: event for event in events}
    answers = [e for e in events if e.event == "send" and e.peer == "server" and e.round == models[-1].round]
    found = set(pulls_of(events, choice.node, models[-1].seq))
    for answer in answers:
        found |= pulls_of(events, answer.node, 0, answer.seq)
    delivery = by_number[models[-1].cause or 0]
    return frozenset(found), by_number[delivery.cause or 0].time
