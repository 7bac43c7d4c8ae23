"""Bandits whose agents talk to neighbours on a graph, or to nobody but a centre."""
