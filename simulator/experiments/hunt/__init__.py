"""The hunt: runs under faults drawn at random, to find those that break an algorithm.

What lives here: fault schedules drawn from seeds, and the search through them.
What may come in: ways to draw faults, and to shrink a failing scenario.
"""
