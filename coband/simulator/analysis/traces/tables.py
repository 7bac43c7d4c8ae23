"""Export to a table: CSV, JSON lines or Parquet, with the columns and names of the view ``trace``."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

from coband.simulator.experiments.store.store import Event, StoreError

BATCH = 65_536
TEXTS = ("label", "event", "node", "peer", "kind", "reason", "detail")
FLOATS = ("time", "value")
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""What formulas begin with."""


def write_csv(events: Iterable[Event], out: Callable[[str], object]) -> None:
    """Write a header and one line per event; missing values are empty. Numbers have full precision.

    A text that spreadsheets would take for a formula has an apostrophe before it.
    """
    # Python quotes a text with a line end of the writer's own kind only, and readers take all kinds for one.
    writer = csv.writer(SimpleNamespace(write=lambda line: out(f"{line[:-2]}\n")), lineterminator="\r\n")
    writer.writerow(Event._fields)
    writer.writerows(map(_inert, event) for event in events)


def _inert(value: object) -> object:
    """A value of a cell that is no formula; what nodes note are numbers, though as text."""
    if not isinstance(value, str) or not value.startswith(FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def write_jsonl(events: Iterable[Event], out: Callable[[str], object]) -> None:
    """Write one JSON object per line; missing values are null."""
    for event in events:
        out(json.dumps(event._asdict(), allow_nan=False) + "\n")


def write_parquet(events: Iterable[Event], file: Path) -> None:
    """Write a Parquet file, batch by batch.

    Raises:
        StoreError: pyarrow is not installed; the text says how to install it.
    """
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        raise StoreError("Parquet needs pyarrow: pip install 'coband[parquet]'.") from error
    types = {
        **dict.fromkeys(Event._fields, arrow.int64()),
        **dict.fromkeys(TEXTS, arrow.string()),
        **dict.fromkeys(FLOATS, arrow.float64()),
    }
    schema, rest = arrow.schema(list(types.items())), iter(events)
    with parquet.ParquetWriter(file, schema) as writer:
        while batch := list(islice(rest, BATCH)):
            columns = dict(zip(Event._fields, zip(*batch, strict=True), strict=True))
            writer.write_table(arrow.table(columns, schema=schema))
