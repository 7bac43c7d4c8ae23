"""Bandits whose agents talk to neighbours on a graph, and recommenders that learn for several tasks at one place."""
