"""Scenarios: reading, overriding and validating YAML files, and explaining their errors.

What lives here: all steps from the text of a file to a validated ``Scenario``, and the error messages of these steps.
What may come in: code about what users write; a valid scenario is executed in ``runs``.
"""
