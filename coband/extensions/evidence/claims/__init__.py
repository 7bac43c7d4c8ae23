"""Claims of papers as data: what they say, the studies that decide them, verdicts with intervals, and their pages."""
