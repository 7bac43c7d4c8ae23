"""Communication counts as a lock file: written once, compared later.

What lives here: the counts of a scenario, the lock file and its comparison.
What may come in: code about counts that must not change unnoticed.
"""
