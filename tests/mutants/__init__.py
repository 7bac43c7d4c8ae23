"""Mutation tests: small changes to core, agents and servers, one at a time, each of which some test should notice.

Cosmic Ray changes the source; a mutant is tested by the few test modules that are meant to notice it.
"""
