"""The reference: what commands, scenario keys and algorithms are, as ``coband describe`` and the documentation say it.

What lives here: sheets made from models, registries and the command tree, and their form as pages.
What may come in: whatever is derived from these at the time of asking; texts belong to what they describe.
"""
