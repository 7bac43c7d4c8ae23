"""Growing Cholesky factors, kernels, embeddings: mathematics only, no nodes, messages or time."""
