"""Mathematics on numpy arrays: kernels, posteriors, designs, networks of neurons.

What lives here: functions and classes that compute. What may come in: numpy and scipy only; nothing here knows nodes,
messages, simulated time, files or random streams of its own.
"""
