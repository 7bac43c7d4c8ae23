"""Linear algebra that grows with the data: Cholesky factors, Gram matrices, quadratic forms, caches.

What may come in: anything that is stated in matrices alone, without kernels, arms or rewards.
"""
