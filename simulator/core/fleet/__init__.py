"""Fleets: tables of devices, from which agents get their speed, links and availability together.

What lives here: tables, the files that they are read from, generators fitted to them, and what scenarios name.
What may come in: other sources of devices. `core.plan.settled` gives agents their devices.
"""
