"""Public datasets: downloads with verified checksums.

What lives here: code that downloads files. What may come in: network access; readers of the files are in ``problems``.
"""
