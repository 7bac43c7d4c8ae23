"""Attacks from outside: damaged stores and odd surroundings. ``python -m tests.attacks`` writes docs/reliability.md."""
