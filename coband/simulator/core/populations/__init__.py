"""Populations: tables of devices, from which agents get their speed, links and availability together.

What may come in: other sources of devices. `core.plan.settled` gives agents their devices.
"""
