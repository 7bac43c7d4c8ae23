"""What several servers share: sums of uploads, synchronisations, and phases that end for all together."""
