"""Messages between nodes, one module for each family of protocols.

The size of a message is the number of scalars in its payload fields. "Up" is from an agent to the server, "down" from
the server to one or all agents.
"""
