"""The registry: installed algorithms, problems and data sets, with what they say of themselves.

What lives here: entry points, the texts of ``coband list`` and ``coband describe``, and references.
What may come in: code that finds or describes what is installed.
"""
