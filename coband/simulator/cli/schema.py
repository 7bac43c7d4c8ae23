"""``coband schema``: the JSON Schema of scenario files."""

from __future__ import annotations

import json
from pathlib import Path

import click

from coband.simulator.cli.options import FORCE, out_file
from coband.simulator.terminal.output import warn_of_plugins


@click.command()
@out_file("Output file; by default standard output.")
@FORCE
def schema(out: Path | None, force: bool) -> None:
    """Print the JSON Schema (draft 2020-12) of scenario files, installed plugins included.

    Editors with a YAML language server check and complete scenarios with it, for instance by a first line
    "# yaml-language-server: $schema=FILE".
    """
    from coband.simulator.experiments.registry.registry import Registry
    from coband.simulator.experiments.scenario.document import json_schema
    from coband.simulator.experiments.store.files import keep_file

    warn_of_plugins()
    text = json.dumps(json_schema(Registry.installed()), indent=2, ensure_ascii=False)
    if out is None:
        click.echo(text)
    else:
        keep_file(out, f"{text}\n".encode(), force=force)
