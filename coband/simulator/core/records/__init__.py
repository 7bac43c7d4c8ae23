"""Records: ledger, trace, invariants, and what a run counts.

What lives here: records of what happened, and checks of them.
What may come in: code that observes a run and never changes its course.
"""
