"""Fault injection: runs under random faults, to find those that make an algorithm fail (``coband hunt``).

What may come in: further kinds of faults, and ways to shrink a failing scenario.
"""
