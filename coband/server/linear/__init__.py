"""Servers of the linear bandits."""
