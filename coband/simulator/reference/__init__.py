"""The reference: what commands, scenario keys and algorithms are, as ``coband describe`` and the documentation say it.

What may come in: whatever is derived from these at the time of asking; texts belong to what they describe.
"""
