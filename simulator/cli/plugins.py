"""Plugins that could not be used, on standard error."""

from __future__ import annotations

import click


def warn_of_plugins() -> None:
    """Name every plugin that was left out."""
    from coband.simulator.experiments.registry.registry import Registry

    for warning in Registry.installed().warnings:
        click.echo(f"warning: {warning}", err=True)
