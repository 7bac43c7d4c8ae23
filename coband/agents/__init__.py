"""What runs on each client: algorithms by family, one module for each or for a few that differ in little.

The server's side of an algorithm is in `coband.server`, under the same family and name; what they send, in `messages`.
"""
