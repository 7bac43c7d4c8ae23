"""The registry: installed algorithms, problems and data sets, with what they say of themselves.

What may come in: code that finds or describes what is installed.
"""
