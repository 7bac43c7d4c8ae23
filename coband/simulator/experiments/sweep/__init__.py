"""Sweeps: one scenario file, many points of a grid, thousands of jobs on one machine or a cluster."""
