"""Mathematics on numpy arrays: kernels, posteriors, designs, networks of neurons.

What may come in: numpy and scipy only; nothing here knows nodes, messages, simulated
time, files or random streams of its own.
"""
