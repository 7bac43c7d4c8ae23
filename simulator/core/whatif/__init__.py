"""What-if runs: a run once more with something changed, and every random draw where it was.

What lives here: what can be changed, the addresses of draws, and the transports that lose or delay a chosen message.
What may come in: everything that an ordinary run never makes; the engine asks for it in one place, `core.assembly`.
"""
