"""Theorems beside runs: their bounds with the measured information gain, and what of their assumptions holds."""
