"""Posteriors: mean and variance of rewards given observations, exact and approximate, for kernels and for features.

What lives here: everything that learns from (point, reward) pairs and predicts; ``choose`` decides which one is used.
What may come in: classes with the interface of ``protocol.Posterior``, and what they are made of.
"""
