"""The reference: what scenario keys, kinds and algorithms are, as ``coband describe`` and the pages say it.

What may come in: whatever is derived from these at the time of asking; texts belong to what they describe.
"""
