"""Attacks from outside: damaged stores and odd surroundings."""
