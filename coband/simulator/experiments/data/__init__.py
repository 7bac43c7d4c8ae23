"""Public datasets: downloads with verified checksums.

What may come in: network access; readers of the files are in ``problems``.
"""
