"""The server of FN-UCB."""
