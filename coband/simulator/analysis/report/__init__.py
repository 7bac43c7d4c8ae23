"""Comparisons, tables, figures and HTML reports of stored runs.

What lives here: everything between a finished run and what a reader sees of it.
What may come in: figures and tables; they read stored results and never run a scenario.
"""
