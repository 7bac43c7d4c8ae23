"""Neural networks: values, gradients for every input, and training by gradient descent.

What may come in: whatever is computed with weights of networks; ridge regression on gradients is in ``posteriors``.
"""
