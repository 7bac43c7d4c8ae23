"""Compares runs: who is better, by how much, and how certain that is.

What may come in: questions to the results of several labels, as numbers and tables; ``report`` draws them.
"""
