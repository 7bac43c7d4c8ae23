"""The checks of ``checks: full``: a second opinion on what nodes decide, send and are handed, and on what links draw.

What may come in: code that observes a run and never changes its course; everyday runs do not load its objects.
"""
