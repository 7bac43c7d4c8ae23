"""Random damage to the files of stored runs, and what every command that reads them makes of it."""

import contextlib
import io
import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coband.simulator.cli.main import exit_status
from coband.simulator.experiments.runs.driver import drive
from coband.simulator.experiments.runs.reporting import Commands
from coband.simulator.experiments.runs.study import study_of
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.experiments.store import directory
from coband.simulator.experiments.store.recording import Recording
from tests.analysis.traces.runs import STAR

PAGE = 16384
LIMIT_SECONDS = 60
CHOICE = ("--label", "One", "--replication", "0")
COMMANDS: dict[str, tuple[str, ...]] = {
    "show": ("trace", "show", "RUN"),
    "message": ("trace", "show", "RUN", "--message", "20", *CHOICE),
    "why": ("trace", "why", "RUN", "200", *CHOICE, "--all"),
    "stats": ("trace", "stats", "RUN", "--by", "kind,node"),
    "diff": ("trace", "diff", "RUN", "WHOLE"),
    "query": ("trace", "query", "RUN", "SELECT * FROM trace ORDER BY value, detail"),
    "perfetto": ("trace", "export", "RUN", "--format", "perfetto"),
    "waits": ("trace", "waits", "RUN"),
    "verify": ("trace", "verify", "RUN"),
    "cite": ("cite", "RUN"),
    "compare": ("compare", "RUN"),
    "report": ("report", "RUN", "--force"),
}


@dataclass(frozen=True)
class Finding:
    """What one damaged copy led to.

    Attributes:
        damage: what was done, in words.
        statuses: exit status by command; -1 for one that did not come to an end.
        shown: what commands wrote that ended otherwise than with 0, 1 or 2.
    """

    damage: str
    statuses: dict[str, int]
    shown: str


def finished(out: Path, replications: int = 1, trace: str = "full") -> Path:
    return _performed(out, replications, trace)


def killed(out: Path) -> Path:
    """What a run leaves behind that was killed in its fourth job."""
    process = os.fork()
    if not process:
        Recording.close = _deadly(Recording.close)  # type: ignore[method-assign]
        _performed(out, 2, "protocol")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 9
    return out


def _deadly(close: Callable[..., None]) -> Callable[..., None]:
    calls = []

    def closed(*arguments: Any, **keywords: Any) -> None:
        calls.append(arguments)
        if len(calls) == 4:
            os._exit(9)
        close(*arguments, **keywords)

    return closed


def _performed(out: Path, replications: int, trace: str) -> Path:
    study = study_of(loads(STAR, overrides=(f"replications={replications}", f"trace={trace}")))
    command = Commands(["coband", "run", "x.yaml"], ["coband", "run", "x.yaml"])
    report = drive(study, directory.create("x", out), commands=command)
    assert not report.failures
    return out


def _flip(content: bytearray, draw: random.Random) -> str:
    places = [draw.randrange(len(content)) for _ in range(draw.choice((1, 1, 2, 8)))]
    for place in places:
        content[place] ^= 1 << draw.randrange(8)
    return f"{len(places)} bits flipped, first in byte {places[0]}"


def _truncate(content: bytearray, draw: random.Random) -> str:
    size = draw.randrange(len(content))
    if draw.random() < 0.5:
        size -= size % PAGE
    del content[size:]
    return f"cut off after {size} bytes"


def _zero_page(content: bytearray, draw: random.Random) -> str:
    number = draw.randrange(-(-len(content) // PAGE))
    part = slice(number * PAGE, min(len(content), (number + 1) * PAGE))
    content[part] = bytes(part.stop - part.start)
    return f"page {number + 1} zeroed"


def _noise(content: bytearray, draw: random.Random) -> str:
    start, size = draw.randrange(len(content)), draw.choice((4, 64, 512, 4096))
    content[start : start + size] = draw.randbytes(size)
    return f"{size} bytes of noise at {start}"


def _zero_range(content: bytearray, draw: random.Random) -> str:
    start, size = draw.randrange(len(content)), draw.choice((16, 512, 4096, 65536))
    size = min(size, len(content) - start)
    content[start : start + size] = bytes(size)
    return f"{size} zeros at {start}"


def _copy_page(content: bytearray, draw: random.Random) -> str:
    pages = len(content) // PAGE
    if pages < 2:
        return _flip(content, draw)
    source, target = draw.sample(range(pages), 2)
    content[target * PAGE : (target + 1) * PAGE] = content[source * PAGE : (source + 1) * PAGE]
    return f"page {source + 1} copied over page {target + 1}"


CHANGES = (_flip, _flip, _truncate, _zero_page, _noise, _zero_range, _copy_page)


def damage(run: Path, draw: random.Random) -> str:
    """Change one of the files of a run at random; returns what was done, or "" if nothing changed."""
    files = sorted(file for file in run.rglob("*") if ".sqlite" in file.name and file.stat().st_size)
    file = draw.choice(files)
    if file.suffix != ".sqlite" and draw.random() < 0.3:
        file.unlink()
        return f"{file.name} removed"
    before = file.read_bytes()
    content = bytearray(before)
    what = draw.choice(CHANGES)(content, draw)
    file.write_bytes(content)
    return f"{file.name}: {what}" if content != before else ""


def attack(original: Path, folder: Path, seed: int, names: Iterable[str]) -> Finding | None:
    """Damage a copy of a run and let commands read it; None if the draw changed nothing."""
    copy = folder / f"copy-{seed}"
    shutil.copytree(original, copy)
    try:
        what = damage(copy, random.Random(seed))
        if not what:
            return None
        statuses, shown = {}, ""
        for name in names:
            arguments = [{"RUN": str(copy), "WHOLE": str(original)}.get(word, word) for word in COMMANDS[name]]
            statuses[name], text = called(arguments)
            shown += text if statuses[name] not in (0, 1, 2) else ""
        return Finding(what, statuses, shown)
    finally:
        shutil.rmtree(copy)


def called(arguments: list[str]) -> tuple[int, str]:
    """Exit status and output of a command in a process of its own, which is killed when it takes too long."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        _call(arguments, writing)
    os.close(writing)
    end = time.monotonic() + LIMIT_SECONDS
    while (found := os.waitpid(process, os.WNOHANG)) == (0, 0):
        if time.monotonic() > end:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            os.close(reading)
            return -1, "no end"
        time.sleep(0.002)
    with os.fdopen(reading, "rb") as stream:
        text = stream.read().decode(errors="replace")
    return os.waitstatus_to_exitcode(found[1]), text


def _call(arguments: list[str], writing: int) -> None:
    """Run a command, hand over what it writes as far as it fits into the pipe, and end the process."""
    status = 99
    try:
        text = io.StringIO()
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            status = exit_status(arguments)
        os.write(writing, text.getvalue()[-16000:].encode(errors="replace"))
    finally:
        os._exit(status)


def attacks(original: Path, folder: Path, seeds: range, names: Iterable[str] = COMMANDS) -> Iterator[Finding]:
    for seed in seeds:
        found = attack(original, folder, seed, tuple(names))
        if found is not None:
            yield found
