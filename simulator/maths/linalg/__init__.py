"""Linear algebra that grows with the data: Cholesky factors, Gram matrices, quadratic forms, caches.

What lives here: data structures for matrices that change by few rows at a time.
What may come in: anything that is stated in matrices alone, without kernels, arms or rewards.
"""
