"""Cooperative bandits with K arms and without features."""
