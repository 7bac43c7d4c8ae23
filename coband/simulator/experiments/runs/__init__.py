"""Runs: jobs (one algorithm on one replication), their execution, results and expectations.

What lives here: the way from a validated scenario to results.
What may come in: code that starts jobs or summarises what they give; files of results are in ``store``.
"""
