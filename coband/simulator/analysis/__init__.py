"""What asks questions of runs: traces, reports, claims, frontiers, counts, audits and faults."""
