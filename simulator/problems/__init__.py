"""Bandit problems: arm sets, reward functions, noise and data sets.

What lives here: models of the ``problem:`` section of a scenario, and the worlds they draw.
What may come in: numpy, scipy and ``maths``; a world shows an agent its arms and its rewards, and nothing else.
"""
