"""The simulator: mathematics, problems, core, experiments and command line, each a package."""
