"""Scenarios: YAML files read, overridden, validated and explained.

What lives here: the way from text to a validated ``Scenario``, and every error message on it.
What may come in: code about what users write; what happens to a valid scenario is in ``runs``.
"""
