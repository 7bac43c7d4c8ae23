"""Making the parts of a run from its plan: nodes, the hosts around them, and everything else.

What may come in: code that runs once, before the first event.
"""
