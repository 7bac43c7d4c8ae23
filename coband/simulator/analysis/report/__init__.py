"""Figures and HTML reports of stored runs.

What may come in: panels of every run, and what arranges panels on a page; those of a feature stand in its room.
"""
