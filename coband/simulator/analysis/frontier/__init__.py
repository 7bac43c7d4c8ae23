"""The frontier: which algorithms and parameters are not dominated, by a search and by fresh seeds after it."""
