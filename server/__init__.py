"""What runs on the server: one file per protocol, same stem as its agent."""
