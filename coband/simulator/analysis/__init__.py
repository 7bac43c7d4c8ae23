"""What asks questions of runs: traces, reports, claims, frontiers, counts, and what would have happened otherwise."""
