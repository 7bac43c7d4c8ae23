"""Public data sets: download with verified checksums.

What lives here: fetching. What may come in: access to the network; reading the files is in ``problems``.
"""
