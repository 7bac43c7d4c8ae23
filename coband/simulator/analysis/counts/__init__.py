"""Communication counts as a lock file: written once, compared later.

What may come in: code about counts that must not change unnoticed.
"""
