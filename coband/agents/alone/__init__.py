"""Algorithms whose agents send nothing; baselines of the others."""
