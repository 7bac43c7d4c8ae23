"""The clock: the order of what is due, and SimPy's own events beside it."""

import pytest

from coband.simulator.core.clock.clock import DELIVERY, NEVER_DUE, STATE, TIMER, TURN, Clock


def filled() -> tuple[Clock, list[tuple[float, str]]]:
    """A clock on which four kinds of callbacks are due at time 1, scheduled in another order, and one later."""
    clock, seen = Clock(), list[tuple[float, str]]()
    for time, kind, node, name in (
        (2.0, TURN, 0, "later"),
        (1.0, TIMER, -1, "timer"),
        (1.0, DELIVERY, 1, "delivery to 1"),
        (1.0, DELIVERY, 0, "delivery to 0"),
        (1.0, DELIVERY, 0, "second delivery to 0"),
        (1.0, DELIVERY, -1, "delivery to the server"),
        (1.0, TURN, 5, "turn"),
        (1.0, STATE, 7, "down"),
    ):
        clock.at(time, kind, node, lambda name: seen.append((clock.now, name)), name)
    return clock, seen


ORDER = ["down", "turn", "delivery to the server", "delivery to 0", "second delivery to 0", "delivery to 1", "timer"]


def test_simultaneous_callbacks_run_in_the_documented_order() -> None:
    clock, seen = filled()
    assert clock.ahead == 8
    clock.run()
    assert seen == [(1.0, name) for name in ORDER] + [(2.0, "later")]
    assert (clock.ahead, clock.now) == (0, 2.0)


def test_steps_and_an_end_do_what_a_run_does() -> None:
    clock, seen = filled()
    clock.step()
    assert seen == [(1.0, "down")]
    clock.run(until=1.5)
    assert [name for _, name in seen] == ORDER
    assert clock.now == 1.5


def test_events_of_simpy_run_on_the_same_clock() -> None:
    clock, seen = filled()

    def process() -> object:
        yield clock.timeout(1.25)
        seen.append((clock.now, "process"))

    clock.process(process())  # type: ignore[arg-type]
    clock.run()
    assert [name for _, name in seen] == [*ORDER, "process", "later"]


def test_an_error_in_a_callback_ends_the_run() -> None:
    clock, seen = filled()

    def fail(value: object) -> None:
        raise ValueError("planted")

    clock.at(1.5, TURN, 0, fail)
    with pytest.raises(ValueError, match="planted"):
        clock.run()
    assert [name for _, name in seen] == ORDER


def test_where_a_real_clock_decides_events_run_in_the_same_order_at_its_time() -> None:
    """As in a live run: nothing is early, and what was due a while ago happens now."""
    clock, seen = filled()
    now = 0.0
    while clock.ahead:
        now += 0.75
        clock.advance(now)
        while clock.next_due[0] <= now:
            clock.run_due(now)
        assert clock.now == now
    assert seen == [(1.5, name) for name in ORDER] + [(2.25, "later")]
    assert clock.next_due == NEVER_DUE


def test_where_a_real_clock_decides_events_of_simpy_run_too() -> None:
    clock, seen = Clock(), list[float]()
    clock.timeout(1.0).callbacks.append(lambda event: seen.append(clock.now))  # type: ignore[union-attr]
    clock.run_due(1.5)
    assert seen == [1.5]
