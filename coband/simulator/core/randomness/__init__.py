"""Randomness: named random streams and the distributions that scenarios name.

What may come in: distributions of delays, and the derivation of streams from seeds.
"""
