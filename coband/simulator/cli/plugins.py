"""Warnings about plugins that could not be loaded."""

from __future__ import annotations

import click


def warn_of_plugins() -> None:
    """Print a warning for every plugin that could not be loaded."""
    from coband.simulator.experiments.registry.registry import Registry

    for warning in Registry.installed().warnings:
        click.echo(f"warning: {warning}", err=True)
