"""Posteriors: mean and variance of rewards given observations, exact and approximate, for kernels and for features.

What may come in: classes with the interface of ``protocol.Posterior``, and what they are made of.
"""
