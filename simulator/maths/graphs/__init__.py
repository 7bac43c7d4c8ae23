"""Graph theory: covers of graphs by cliques, independent sets and centres.

What lives here: algorithms on networkx graphs. What may come in: combinatorics without kernels or rewards.
"""
