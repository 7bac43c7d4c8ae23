"""What holds for the whole suite: its order, and that nothing in it depends on how busy the machine is."""

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from coband.simulator.terminal import progress

TESTS = Path(__file__).parent
CHEAP_TO_DEAR = (
    "house maths problems core oracles agents server experiments analysis reference extensions "
    "cluster cli api ui attacks packaging scenarios docs"
).split()
"""The folders of tests in the order in which they run: a mistake shows as early as it can.

Last come many tests that share nothing: however they are spread, several processes end at about the same time."""

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the programs that tests start, which inherit the environment and what is done with signals."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # a shell's background jobs inherit that Ctrl-C is ignored
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # otherwise hundreds of starts compile all sources each
    sys.dont_write_bytecode = False  # nor are the tests compiled for each run
    progress.LOG_SECONDS = (float("inf"), float("inf"))  # a slow machine would write more lines than others
    hide_plugins()
    remember_what_is_set_aside()
    gc.disable()  # until all tests are collected: nothing of that is garbage


def pytest_collection_finish() -> None:
    """Leave what is there now, which lasts to the end, out of all further searches for garbage; these are fewer."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(7_000)  # ten times as many new objects as usual: the rows and messages of a run are not garbage


def remember_what_is_set_aside() -> None:
    """Let ``gc`` say at once whether anything is frozen: it counts a million objects as long as ten small jobs run.

    Each job and each run of the kit asks for it.
    """
    real = gc.freeze, gc.unfreeze
    frozen = [gc.get_freeze_count()]

    def freeze() -> None:
        real[0]()
        frozen[0] = 1

    def unfreeze() -> None:
        real[1]()
        frozen[0] = 0

    gc.freeze, gc.unfreeze, gc.get_freeze_count = freeze, unfreeze, lambda: frozen[0]


@pytest.fixture(scope="module", autouse=True)
def _set_aside() -> Iterator[None]:
    """What the tests of a module have left, in caches above all, is looked at once."""
    yield
    gc.collect()
    gc.freeze()


def hide_plugins() -> None:
    """Hide installed plugins: of two packages of one name Python takes the first, which offers nothing here."""
    groups = [group for group in entry_points().groups if group.startswith("coband.")]
    found = {point.dist.name for group in groups for point in entry_points(group=group) if point.dist is not None}
    others = found - {"coband"}
    if not others:
        return
    folder = tempfile.mkdtemp(prefix="no_plugins_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in others:
        metadata = Path(folder, f"{name.replace('-', '_')}-0.dist-info")
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0\n")
    sys.path.insert(0, folder)
    os.environ["PYTHONPATH"] = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Cheap tests first."""
    ranks = {folder: rank for rank, folder in enumerate(CHEAP_TO_DEAR)}
    items.sort(key=lambda item: _rank(item, ranks))


def _rank(item: pytest.Item, ranks: dict[str, int]) -> tuple[int, bool]:
    """The place of its folder, of the last one the pages that are built together first."""
    ours = item.path.is_relative_to(TESTS)
    return (ranks[item.path.relative_to(TESTS).parts[0]] if ours else len(ranks)), item.path.name != "test_web_pages.py"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Of several processes, one gets all tests of a module."""
    from tests.spread import Spread

    return Spread(config, log)
