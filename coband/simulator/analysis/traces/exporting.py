"""Exports traces for other tools: for Perfetto, or as Parquet with the columns of the view ``trace``. A file appears
only when it is complete, and replaces another one only on demand.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO

from coband.simulator.analysis.traces import perfetto
from coband.simulator.analysis.traces.reading import traced
from coband.simulator.experiments.store.files import refuse_stored, writing_to
from coband.simulator.experiments.store.store import Event, StoredJob, StoredRun, StoreError

COMPRESSED = ".gz"
LEVEL = 6


def export(run: StoredRun, jobs: list[StoredJob], form: str, out: Path | None = None, *, replace: bool = False) -> None:
    """Write the traces of jobs.

    Args:
        jobs: the jobs to export; jobs without a trace are skipped.
        form: one of :data:`~coband.simulator.analysis.traces.FORMATS`.
        out: the file, compressed if its name ends with ``.gz``; None for standard output.
        replace: whether an existing file may be overwritten.

    Raises:
        StoreError: the format does not support the selection, or the file exists.
        OutputError: the file is one of a run, or cannot be written.
    """
    jobs = traced(jobs)
    if out is None:
        if form == "parquet":
            raise StoreError("Parquet is not text; name a file with --out FILE.")
        perfetto.write(jobs, sys.stdout.write)
        return
    if out.exists() and not replace:
        raise StoreError(f"{out} is there already; remove it, choose another --out FILE, or give --force.")
    refuse_stored(out)
    with writing_to(out, "Choose another place with --out."):
        out.parent.mkdir(parents=True, exist_ok=True)
    draft = out.with_name(f".{out.name}.new")
    try:
        with writing_to(out, "Choose another place with --out."):
            if form == "parquet":
                write_parquet(run.events_of(jobs), draft)
            else:
                with _opened(draft, compressed=out.suffix == COMPRESSED) as stream:
                    perfetto.write(jobs, stream.write)
            os.replace(draft, out)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _opened(file: Path, *, compressed: bool) -> Iterator[IO[str]]:
    """A new text file; a compressed one has no date or name in it, so that the same trace gives an identical file."""
    with file.open("wb") as raw:
        binary = gzip.GzipFile("", "wb", LEVEL, raw, mtime=0) if compressed else raw
        with binary, io.TextIOWrapper(binary, encoding="utf-8", newline="") as stream:
            yield stream


BATCH = 65_536
TEXTS = ("label", "event", "node", "peer", "kind", "reason", "detail")
FLOATS = ("time", "value")


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
