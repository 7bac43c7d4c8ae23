"""Servers of the algorithms: one module per protocol, with the same name as the module of its agent."""
