"""Servers of the kernel bandits, each in a module with the name of its agent's."""
