"""Hosts: nodes in simulated time, their speed, and when they are up.

What may come in: everything about one node; what happens between nodes is in ``network``.
"""
