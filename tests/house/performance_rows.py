"""What has to be fast: each row of the two tables of performance targets, and the cases that measure it."""

from collections.abc import Mapping

STRUCTURES: Mapping[str, tuple[str, ...]] = {
    "Async, N=100, T=10^4, gamma=0.1, q=1, D=1": ("async",),
    "Async, N=100, T=10^4, gamma=1, q=0.1, D=5": ("async_short", "async"),
    "Async, N=1000, T=3000": ("async_many", "async"),
    "exact GP, one new point and 20 arms a turn, T=2000": ("exact",),
    "exact GP over a fixed domain of M=2000 points, T=10^4": ("domain",),
    "Coop, V=200, T=40": ("coop", "coop_100"),
    "Coop, V=200, T=100": ("coop_100",),
    "training step, n=2000": ("training_floor",),
    "30-arm min-max design": ("design",),
    "SimPy per agent step": ("turns",),
    "one delayed message": ("exchange",),
    "trace": ("trace",),
}
"""The data structures and their textbook forms."""
NEXT: Mapping[str, tuple[str, ...]] = {
    "FN-UCB with training, N=2": ("fn_trained",),
    "RAGE at gap 0.1, in-process": ("rage",),
    "a job in a sweep, in addition to its own work": ("job", "memory"),
    "Coop, V=200, T=20, 40, 100": ("coop", "coop_100"),
    "Async at the paper's size": ("async",),
    "a linear pull": ("pull",),
    "bare messages": ("exchange",),
    "start of help, validate, a trivial run": ("start_help", "start_validate", "start_run"),
}
"""Whole runs and processes."""
