"""The store: run directories, the SQLite tables in them, and reading them back.

What may come in: code that writes or reads run directories; questions to the events are in ``traces``.
"""
