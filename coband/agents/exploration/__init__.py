"""Pure exploration: who finds the best arm with the fewest samples."""
