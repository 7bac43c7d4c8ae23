"""Analysis of stored traces: causal chains, waits, message histories, differences, SQL queries and exports.

What may come in: questions to events and export formats; the tables themselves are in ``store``.
"""

FORMATS = ("perfetto", "parquet")
"""The export formats."""
