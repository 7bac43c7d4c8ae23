"""Scenarios, runs, stores and statistics."""
