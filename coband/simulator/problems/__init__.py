"""Bandit problems: arm sets, reward functions, noise and data sets.

What may come in: numpy, scipy and ``maths``; a world shows an agent its arms and its rewards, and nothing else.
"""
