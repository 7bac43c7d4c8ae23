"""Graph theory: covers of graphs by cliques, independent sets and centres.

What may come in: combinatorics without kernels or rewards.
"""
