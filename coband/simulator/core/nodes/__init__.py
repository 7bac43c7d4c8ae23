"""Nodes, what they are told when they are made, and what they send."""
