"""Scenarios: reading, overriding and validating YAML files, and explaining their errors.

What may come in: code about what users write; a valid scenario is executed in ``runs``.
"""
