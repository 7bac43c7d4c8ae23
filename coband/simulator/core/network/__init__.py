"""The network: topologies, links with delay, bandwidth and loss, transports, and messages between neighbours.

What may come in: models of links and protocols of delivery; what nodes do with a message is in ``hosts``.
"""
