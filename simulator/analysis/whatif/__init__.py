"""What-if runs of stored runs: what one message, one agent or one parameter has cost.

What may come in: everything that runs a stored run again with something changed.
"""
