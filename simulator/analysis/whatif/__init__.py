"""What-if runs of stored runs: what one message, one agent or one parameter has cost.

What lives here: questions as users ask them, the studies that answer them, and the comparison with the stored run.
What may come in: everything that runs a stored run again with something changed.
"""
