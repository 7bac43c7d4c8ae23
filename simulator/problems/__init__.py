"""What the agents face; each problem keeps the hidden truth apart from what an agent may see."""
