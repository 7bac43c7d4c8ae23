"""Linear bandits with a server."""
