"""The distributions of a scenario, estimated from the trace of a run, simulated or live.

* ``samples``: compute times, delays of messages and losses, as a trace shows them;
* ``families``: the distributions that a scenario offers, their maximum likelihood, and intervals;
* ``estimation``: the best family of each sample, stragglers, bandwidth, and the lines of a scenario.
"""
