"""Runs for the browser of runs, made cheaply: one tiny run and its copies."""

import http.client
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from coband.simulator.ui.server import RunServer
from tests.experiments.runs.fake_runs import perform


def copies(root: Path, count: int) -> list[Path]:
    """Copies of a tiny run: run number i is of study i % 5 and was started on a day of its own."""
    perform(root / "first", replications=2, turns=2, count=2)
    found = []
    for number in range(count):
        path = root / f"study{number % 5}" / f"run-{number:04d}"
        shutil.copytree(root / "first", path)
        day = f"2026-{1 + number // 28:02d}-{1 + number % 28:02d}"
        changed(path, scenario=f"study{number % 5}", started=f"{day}T10:00:00+00:00", finished=f"{day}T10:01:05+00:00")
        found.append(path)
    shutil.rmtree(root / "first")
    return found


def changed(run: Path, **facts: Any) -> None:
    """Change what a run says of itself, in its manifest and in its store, as if it had been so from the beginning."""
    file = run / "manifest.json"
    text = json.dumps(json.loads(file.read_text()) | facts)
    file.write_text(text)
    with closing(sqlite3.connect(run / "run.sqlite")) as connection, connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'manifest'", (text,))


def damage(run: Path) -> None:
    file = run / "run.sqlite"
    content = bytearray(file.read_bytes())
    content[-16_384:] = b"x" * 16_384
    file.write_bytes(content)


class Visitor:
    def __init__(self, server: RunServer) -> None:
        self.server, self.gate = server, server.gate

    def raw(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.gate.port, timeout=600)
        try:
            connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
            for name, value in headers.items():
                if value:
                    connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()

    @property
    def cookie(self) -> str:
        return self.gate.cookie.partition(";")[0]

    def __call__(self, path: str) -> str:
        status, _, text = self.raw(path, Cookie=self.cookie)
        assert status == 200, text
        return text

    def id(self, place: str) -> str:
        return next(one.id for one in self.server.pages.catalogue.entries() if one.place == place)


@contextmanager
def serving(root: Path) -> Iterator[Visitor]:
    with RunServer(root) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield Visitor(server)
        finally:
            server.shutdown()
            thread.join()
