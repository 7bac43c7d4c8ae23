"""``coband data``: download and list public datasets."""

from __future__ import annotations

from pathlib import Path

import click

from coband.extending import options, tables

WORDS = {
    "absent": "not here",
    "verified": "here, checksum verified",
    "complete": "here, nodes and links as published",
    "differs": "here, but not the official file",
    "present": "here",
}
PLACE = click.option(
    "--dir",
    "place",
    type=options.FOLDER,
    help="Directory of the files; by default $COBAND_DATA or the user's cache directory.",
)


@click.group()
def data() -> None:
    """Fetch public datasets and list them."""


@data.command(short_help="Download a dataset and verify its checksum.")
@click.argument("name", metavar="NAME")
@PLACE
def fetch(name: str, place: Path | None) -> None:
    """Download dataset NAME and verify its checksum, unless a verified copy exists."""
    from coband.extensions.data import fetch as data_fetch

    click.echo(data_fetch.fetch(name, place))


@data.command("list")
@PLACE
def list_(place: Path | None) -> None:
    """List the known datasets and the state of their files."""
    from coband.extensions.data import fetch as data_fetch

    rows = []
    for status in data_fetch.listing(place):
        dataset = status.dataset
        where = "" if status.path is None else str(status.path)
        size = [f"{dataset.rows:,}", dataset.columns]
        rows.append([dataset.name, dataset.title, dataset.licence, WORDS[status.state], where, *size])
    tables.show(["name", "title", "licence", "state", "file", "rows", "columns"], rows, left=5)
