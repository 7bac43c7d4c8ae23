"""Hosts: nodes in simulated time, their speed, and when they are up.

What lives here: what calls an agent or a server, and how long its work takes.
What may come in: everything about one node; what happens between nodes is in ``network``.
"""
