"""Simulated time: the event loop, the order of simultaneous events, and schedules of turns.

What may come in: everything about time that does not know messages or links.
"""
