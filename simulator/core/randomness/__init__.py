"""Randomness: named random streams and the distributions that scenarios name.

What lives here: every source of random numbers of a run.
What may come in: distributions of delays, and the derivation of streams from seeds.
"""
