"""Runs tests in forks of a process that has imported what they need.

A test run that starts anew spends most of its time on imports. A fork has them already: ``python zygote.py`` has
imported what is no part of the product, and its forks import the product and the tests; ``python zygote.py FILE ...``
has collected the tests of these files, and its forks only run them. It reads a request in each line of its input and
answers each with a line.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NoReturn

import pytest

PLUGINS = ("xdist.plugin", "_hypothesis_pytestplugin")
HEAVY = (
    *("pytest", "_pytest.pytester", "xdist.remote", "execnet.gateway_base", "hypothesis.strategies", "hypothesis.core"),
    *("hypothesis.internal.conjecture.engine", "pygments.lexers", "numpy.random", "numpy.linalg", "numpy.testing"),
    *("scipy.linalg", "scipy.special", "scipy.optimize", "scipy.stats", "networkx", "simpy", "yaml", "pydantic"),
    *("pydantic_core", "unittest.mock", "multiprocessing.pool", "concurrent.futures", "http.server", "sqlite3"),
)
"""What is imported before the first fork, as far as it is installed."""
FAULT = 99  # exit code of a fork that could not run tests
MEMORY = 6 << 30  # bytes that a run may ask for: a mutant may ask for ever more


class Zygote:
    """The process that forks, seen from outside.

    Args:
        root: the repository whose tests run, in which nothing else writes.
        files: test files that are collected before the first fork; none: each fork collects.
    """

    def __init__(self, root: Path, files: Sequence[str] = ()) -> None:
        self._root = root
        environment = os.environ | {
            "PYTHONPATH": str(root),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "COBAND_TEST_SECONDS": "1",
        }
        for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"):
            environment.pop(name, None)
        command = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "."]
        subprocess.run(command, cwd=root, env=environment, check=True)
        self._process = subprocess.Popen(
            [sys.executable, __file__, *files],
            cwd=root,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, arguments: Sequence[str], wait: float, **options: Any) -> dict[str, Any]:
        """Run pytest in a fork.

        Args:
            arguments: of pytest.
            wait: seconds after which the run is ended.
            options: of `Plugin`; ``changed``: whether a module differs from what was compiled; ``marked``: modules that
                note their statements; ``patch``: a module, its source and a changed one, whose functions are replaced.

        Returns:
            ``code``, the exit code, or a negative number where it was killed; ``tests``, what `Plugin` has reported.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"arguments": [*arguments], "wait": wait, "options": options}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class TooLong(BaseException):
    """A test has used up its time."""


class Plugin:
    """Runs some of the collected tests in a given order, and reports each.

    Args:
        report: file descriptor to which one line is written before and one after each test.
        order: names of tests with the seconds of the processor that each may take; all tests in their own order
            where it is None.
        limit: seconds of each test where no order is given.
        marks: statements that were run, by module, where that is asked for.
    """

    def __init__(
        self,
        report: int,
        order: dict[str, float] | None = None,
        limit: float = 60.0,
        marks: dict[str, bytearray] | None = None,
    ) -> None:
        self._report, self._order, self._limit, self._marks = report, order, limit, marks
        self._shared: dict[
            tuple[str, str], tuple[float, dict[str, bytes]]
        ] = {}  # what fixtures of several tests took and ran

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep what is asked for."""
        if self._order is not None:
            ranks = {name: rank for rank, name in enumerate(self._order)}
            items[:] = sorted((one for one in items if one.nodeid in ranks), key=lambda one: ranks[one.nodeid])

    @pytest.hookimpl
    def pytest_collection_finish(self) -> None:
        """Write which statements ran at import."""
        self._write({"imports": {module: _places(flags) for module, flags in self._take().items()}})

    @pytest.hookimpl
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Write which file's tests cannot be collected."""
        if report.failed:
            self._write({"uncollected": report.nodeid, "why": str(report.longrepr)[-1500:]})

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Write what a test took and which statements it ran, those of its shared fixtures too."""
        limit = self._limit if self._order is None else self._order[item.nodeid]
        self._write({"starts": item.nodeid})
        self._take()
        begin = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, limit)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            used = [one for place, one in self._shared.items() if self._uses(item, *place)]
            seconds = time.process_time() - begin + sum(one[0] for one in used)
            ran: dict[str, list[int]] = {}
            for found in (self._take(), *(one[1] for one in used)):
                for module, flags in found.items():
                    ran[module] = sorted({*ran.get(module, ()), *_places(flags)})
            self._write({"test": item.nodeid, "seconds": round(seconds, 4), "ran": ran})

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[Any]:
        """Set apart what a fixture of several tests does, for all of them."""
        if fixturedef.scope == "function" or self._marks is None:
            return (yield)
        before, begin = self._take(), time.process_time()
        try:
            return (yield)
        finally:
            self._shared[fixturedef.baseid, fixturedef.argname] = (time.process_time() - begin, self._take())
            self._put(before)

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write which test failed."""
        if report.failed:
            self._write({"failed": report.nodeid, "why": str(report.longrepr)[-1500:]})

    @staticmethod
    def _uses(item: pytest.Item, place: str, fixture: str) -> bool:
        return item.nodeid.startswith(place) and fixture in getattr(item, "fixturenames", ())

    def _write(self, entry: dict[str, Any]) -> None:
        os.write(self._report, (json.dumps(entry) + "\n").encode())

    def _take(self) -> dict[str, bytes]:
        """The marks of all modules, which are cleared."""
        taken = {module: bytes(flags) for module, flags in (self._marks or {}).items() if any(flags)}
        for flags in (self._marks or {}).values():
            flags[:] = bytes(len(flags))
        return taken

    def _put(self, taken: dict[str, bytes]) -> None:
        for module, flags in taken.items():
            assert self._marks is not None
            self._marks[module][:] = flags


def _places(flags: bytes) -> list[int]:
    return [place for place, flag in enumerate(flags) if flag]


def serve() -> None:
    """Answer requests with forks that import."""
    requests, answers = _channels()
    for name in (*PLUGINS, *HEAVY):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    sys.path.insert(0, os.getcwd())
    _loop(requests, answers, _child)


def serve_collected(files: Sequence[str]) -> None:
    """Answer requests with forks that run collected tests."""
    sys.path.insert(0, os.getcwd())
    arguments = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *files]
    pytest.main(arguments, plugins=[*map(importlib.import_module, PLUGINS), Collected(*_channels())])


class Collected:
    """Serves requests instead of running the tests of a session.

    Args:
        requests, answers: file descriptors.
    """

    def __init__(self, requests: int, answers: int) -> None:
        self._requests, self._answers = requests, answers

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Fork for each request."""
        live = patches.functions(Path.cwd())

        def child(request: dict[str, Any], report: int) -> NoReturn:
            _guarded(report, lambda: self._run(session, request["options"], report, live))

        _loop(self._requests, self._answers, child)
        return True

    @staticmethod
    def _run(
        session: pytest.Session, options: dict[str, Any], report: int, live: dict[CodeType, list[FunctionType]]
    ) -> int:
        """Run the tests that are asked for, up to the first that fails, as pytest does."""
        module, source, changed = options.pop("patch")
        found = patches.patches(source, changed, module)
        assert found is not None
        sys.dont_write_bytecode = True
        if _imported(module):  # otherwise a test imports the changed file
            assert patches.apply(found, live), f"nothing in {module} was changed: its functions are not there"
        plugin = Plugin(report, options["order"])
        session.config.pluginmanager.register(plugin)
        plugin.pytest_collection_modifyitems(session.items)
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                break
        return int(session.testsfailed > 0)


def _channels() -> tuple[int, int]:
    """Where requests come from and answers go to, while nothing else reads or writes there."""
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return requests, answers


def _loop(requests: int, answers: int, child: Callable[[dict[str, Any], int], NoReturn]) -> None:
    gc.collect()
    gc.freeze()
    with os.fdopen(requests) as lines:
        for line in lines:
            answer = _answer(json.loads(line), child)
            os.write(answers, (json.dumps(answer) + "\n").encode())


def _answer(request: dict[str, Any], child: Callable[[dict[str, Any], int], NoReturn]) -> dict[str, Any]:
    """Fork, wait, and give what was reported."""
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"zygote-{os.getpid()}.jsonl"
    report = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    if "marked" in request["options"]:
        _marked(tuple(request["options"]["marked"]))  # here, for all forks
    number = os.fork()
    if number == 0:
        child(request, report)
    end = time.monotonic() + float(request["wait"])
    while True:
        done, status = os.waitpid(number, os.WNOHANG)
        if done or time.monotonic() > end:
            break
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(number, signal.SIGKILL)  # what it has started, too
    if not done:
        _, status = os.waitpid(number, 0)
    os.close(report)
    lines = path.read_text(encoding="utf-8").splitlines()
    path.unlink()
    return {"code": os.waitstatus_to_exitcode(status), "tests": [json.loads(line) for line in lines]}


def _guarded(report: int, run: Callable[[], int]) -> NoReturn:
    """Run and end, in a process group of its own."""
    code = FAULT
    try:
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        code = run()
    except BaseException as problem:
        os.write(report, (json.dumps({"problem": repr(problem)}) + "\n").encode())
    os._exit(code)


def _child(request: dict[str, Any], report: int) -> NoReturn:
    """Run pytest and end."""

    def run() -> int:
        options = request["options"]
        sys.dont_write_bytecode = bool(options.pop("changed", False))
        marked = options.pop("marked", None)
        if marked is not None:
            signal.signal(signal.SIGPROF, _too_long)  # without this it ends the process
            options["marks"] = _marking(marked)
        plugins = [*map(importlib.import_module, PLUGINS), Plugin(report, **options)]
        return int(pytest.main(request["arguments"], plugins=plugins))

    _guarded(report, run)


def _imported(file: str) -> bool:
    path = os.path.realpath(file)
    return any(os.path.realpath(getattr(one, "__file__", None) or "") == path for one in list(sys.modules.values()))


def _too_long(*_: object) -> NoReturn:
    raise TooLong


@cache
def _marked(modules: tuple[str, ...]) -> dict[str, tuple[CodeType, int]]:
    """Programs of modules that note which of their statements run, and how many statements they have."""
    made = {}
    for module in modules:
        tree, count = statements.marked(Path(module).read_text(encoding="utf-8"), module)
        made[module] = compile(tree, module, "exec", dont_inherit=True), count
    return made


def _marking(modules: Sequence[str]) -> dict[str, bytearray]:
    """Let these modules note each statement that runs in them, from their import on."""
    programs = _marked(tuple(modules))
    marks = {module: bytearray(count) for module, (_, count) in programs.items()}
    paths = {os.path.realpath(module): module for module in modules}
    original = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> Any:
        module = paths.get(os.path.realpath(loader.get_filename(name)))
        return original(loader, name) if module is None else programs[module][0]

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign,assignment]
    sys.coband_marks = marks  # type: ignore[attr-defined]
    return marks


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))  # by itself this file is no part of a package
    import patches
    import statements

    if len(sys.argv) > 1:
        serve_collected(sys.argv[1:])
    else:
        serve()
else:
    from tests.mutants import patches, statements
