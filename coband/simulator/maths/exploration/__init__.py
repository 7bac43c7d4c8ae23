"""Exploration: how pulls are spread over arms, by experimental designs and by elimination.

What may come in: rules that decide what to sample; what is learnt from samples is in ``posteriors``.
"""
