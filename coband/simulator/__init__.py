"""The simulator: mathematics, problems, core, experiments, conformance kit and command line, each a package."""
