"""What several families share: parameters, synchronisations, and phases that end for all together."""
