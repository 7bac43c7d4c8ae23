"""Analysis of stored traces: causal chains, message histories, differences, SQL queries and exports.

What may come in: questions to events and export formats; the tables themselves are in ``store``.
"""

FORMATS = ("perfetto", "jsonl", "csv", "parquet")
"""The export formats."""
