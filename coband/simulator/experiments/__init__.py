"""Scenarios, registries, runs, sweeps, stores and statistics: what runs."""
