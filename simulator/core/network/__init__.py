"""The network: topologies, links with delay, bandwidth and loss, transports, and messages between neighbours.

What lives here: the way of a message from its sender to its receiver.
What may come in: models of links and protocols of delivery; what nodes do with a message is in ``hosts``.
"""
