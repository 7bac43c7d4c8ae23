"""Twins of nodes, with ``checks: full``: a second opinion on what nodes decide and send.

What may come in: code that observes a run and never changes its course; everyday runs do not load its objects.
"""
