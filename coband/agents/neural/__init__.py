"""Bandits with neural networks: FN-UCB with a server, and NeuralUCB and NeuralTS, which send nothing."""
