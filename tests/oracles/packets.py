"""A recorded link as a plain loop over its packets, after Mahimahi (Netravali et al. 2015)."""

from collections.abc import Sequence


def departures(times: Sequence[int], messages: Sequence[tuple[float, int]]) -> list[float]:
    """When each message has left, in milliseconds.

    Args:
        times: in milliseconds, at which a packet of 1,500 bytes can pass; they start again at the last one.
        messages: (arrival in milliseconds, bytes), in order of arrival.
    """
    queue: list[list[float]] = []  # [message, arrival, bytes that are left]
    for number, (arrival, size) in enumerate(messages):
        queue.append([number, arrival, size])
    left = [0.0] * len(messages)
    start = 0
    while queue:
        for time in times:
            if queue and queue[0][1] <= start + time:
                queue[0][2] -= 1500
                if queue[0][2] <= 0:
                    left[int(queue.pop(0)[0])] = float(start + time)
        start += times[-1]
    return left
