"""What counts as a mutant, and what becomes of results: without running any."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cosmic_ray", reason="mutation tests need the extra `mutants`")

from tests.mutants import __main__ as command
from tests.mutants import operators, patches, reach, selection, session, statements, zygote

SOURCE = '''"""A module."""


def first(x: int | None, y: int = 1) -> bool:
    """A function."""
    total: int = y
    report(x, total)
    return total < 2
'''


def changes(source: str = SOURCE) -> set[tuple[int, str, str]]:
    return {(one.line, one.operator, one.after) for one in operators.mutants("m.py", source)}


def test_mutants_are_other_programs() -> None:
    """No type, no docstring: what is left are the default, the assignment, the call and the comparison."""
    assert changes() == {
        (4, "NumberReplacer", "def first(x: int | None, y: int = 2) -> bool:"),
        (4, "NumberReplacer", "def first(x: int | None, y: int = 0) -> bool:"),
        (6, "RemoveStatement", "pass"),
        (7, "RemoveStatement", "pass"),
        (7, "SwapArguments", "report(total, x)"),
        (8, "ReplaceComparisonOperator_Lt_LtE", "return total <= 2"),
        (8, "ReplaceComparisonOperator_Lt_Gt", "return total > 2"),
        (8, "NumberReplacer", "return total < 3"),
        (8, "NumberReplacer", "return total < 1"),
    }


def test_exceptions_with_a_dot_in_their_name_stay_as_they_are() -> None:
    source = "def f() -> None:\n    try:\n        g()\n    except (json.JSONDecodeError, OSError):\n        h()\n"
    replaced = {after for _, operator, after in changes(source) if operator == "ExceptionReplacer"}
    assert replaced == {"except (json.JSONDecodeError, CosmicRayTestingException):"}
    assert "RemoveStatement" in {operator for _, operator, _ in changes(source)}


def test_a_mutant_is_the_module_with_one_change() -> None:
    """Every one is what stands in its description, and no other line differs."""
    found = list(operators.mutants("m.py", SOURCE))
    assert len({one.key for one in found}) == len(found)
    for one in found:
        changed = one.applied(SOURCE).splitlines()
        differ = [n for n, pair in enumerate(zip(SOURCE.splitlines(), changed, strict=True), 1) if pair[0] != pair[1]]
        assert differ == [one.line]
        assert changed[one.line - 1].strip() == one.after


def test_every_module_has_tests_that_exist() -> None:
    assert len(list(selection.modules())) > 90
    files = selection.files_with_tests()
    assert len(files) > 30
    assert all((selection.ROOT / name).is_file() for name in files)


BRANCHES = '''"""A module."""
from __future__ import annotations

ONE = 1


def sign(x: int,
         y: int = 0) -> int:
    """A function."""
    if x > y:
        return ONE
    elif (x <
          y):
        return -1
    return 0
'''


def ran(*arguments: int) -> set[int]:
    """The lines of the statements of `BRANCHES` that run in a call of the program that notes them."""
    tree, count = statements.marked(BRANCHES, "m.py")
    marks = {"m.py": bytearray(count)}
    names: dict[str, Any] = {}
    sys.coband_marks = marks  # type: ignore[attr-defined]
    exec(compile(tree, "m.py", "exec", dont_inherit=True), names)
    assert names["sign"].__doc__ == "A function."
    assert not any(marks["m.py"])
    names["sign"](*arguments)
    lines = [node.lineno for node in statements.numbered(BRANCHES)[1]]
    return {line for line, flag in zip(lines, marks["m.py"], strict=True) if flag}


def test_a_program_notes_which_of_its_statements_run() -> None:
    assert ran(1) == {10, 11}
    assert ran(-1) == {10, 12, 14}
    assert ran(0) == {10, 12, 15}


@pytest.mark.parametrize(("line", "expected"), [(11, {11}), (13, {12}), (8, {9, 10, 11, 12, 14, 15}), (4, set())])
def test_the_statements_that_stand_for_a_line(line: int, expected: set[int]) -> None:
    """Its own, with continuation lines; for a default all of the function; for what runs at import none."""
    lines = [node.lineno for node in statements.numbered(BRANCHES)[1]]
    assert {lines[place] for place in statements.around(BRANCHES, line)} == expected


FIELDS = """class Config:
    size: int = 3

    def doubled(self, by: int = 2) -> int:
        return by * self.size
"""


@pytest.mark.parametrize(("line", "expected"), [(1, set()), (2, set()), (4, {5}), (5, {5})])
def test_fields_of_classes_run_at_import(line: int, expected: set[int]) -> None:
    lines = [node.lineno for node in statements.numbered(FIELDS)[1]]
    assert {lines[place] for place in statements.around(FIELDS, line)} == expected


TESTED = """import time
from m import sign

def test_one(): assert sign(1) == 1
def test_less(): assert sign(-1) == -1
def test_equal(): assert sign(0) == 0
"""


def test_a_fork_tests_the_module_as_it_is_now(tmp_path: Path) -> None:
    """A change is noticed by the test that runs it, at once and each time; a loop without end is ended."""
    (tmp_path / "m.py").write_text(BRANCHES)
    (tmp_path / "test_m.py").write_text(TESTED)
    started = zygote.Zygote(tmp_path)
    limits = dict.fromkeys(["test_m.py::test_equal", "test_m.py::test_one"], 0.5)

    def failed(source: str) -> tuple[int, list[str]]:
        (tmp_path / "m.py").write_text(source)
        answer = started.run(["-x", *reach.OPTIONS, "test_m.py"], 60.0, order=limits, changed=True)
        return answer["code"], [entry["failed"] for entry in answer["tests"] if "failed" in entry]

    try:
        seen = started.run([*reach.OPTIONS, "test_m.py"], 60.0, marked=["m.py"])["tests"]
        lengths = {entry["test"]: len(entry["ran"]["m.py"]) for entry in seen if "test" in entry}
        assert lengths == {"test_m.py::test_one": 2, "test_m.py::test_less": 3, "test_m.py::test_equal": 3}
        assert failed(BRANCHES) == (0, [])
        assert failed(BRANCHES.replace("return 0", "return 1")) == (1, ["test_m.py::test_equal"])
        assert failed(BRANCHES.replace("ONE = 1", "ONE = 2")) == (1, ["test_m.py::test_one"])
        assert failed(BRANCHES.replace("return -1", "return 1")) == (0, []), "by a test that was not asked for"
        assert failed(BRANCHES.replace("return 0", "while x < 1: pass")) == (-signal.SIGPROF, [])
        assert failed(BRANCHES) == (0, [])
    finally:
        started.close()


def test_a_change_that_reaches_no_function_is_an_error_and_those_set_aside_are_reached(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(BRANCHES)
    (tmp_path / "test_m.py").write_text(TESTED)
    (tmp_path / "conftest.py").write_text("import gc\n\n\ndef pytest_collection_finish():\n    gc.freeze()\n")
    started = zygote.Zygote(tmp_path, ["test_m.py"])

    def code(source: str, changed: str) -> int:
        asked = {"order": {"test_m.py::test_equal": 3.0}, "patch": ["m.py", source, changed]}
        return int(started.run(["-q", "test_m.py"], 60.0, **asked)["code"])

    try:
        assert code(BRANCHES, BRANCHES.replace("return 0", "return 1")) == 1
        other = "def other():\n    return 0\n"
        assert code(other, other.replace("0", "1")) == zygote.FAULT
    finally:
        started.close()


def test_how_a_function_is_called_is_a_part_of_it() -> None:
    source = "def first(one, *, other):\n    return one"
    assert patches.patches(source, source, "m.py") == {}
    for changed in (source.replace("*, ", ""), source.replace("*", "/")):
        assert len(patches.patches(source, changed, "m.py") or ()) == 1


def test_a_module_that_a_test_imports_is_the_changed_one(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(BRANCHES)
    (tmp_path / "test_m.py").write_text("def test_late():\n    from m import sign\n    assert sign(0) == 0\n")
    started = zygote.Zygote(tmp_path, ["test_m.py"])
    try:
        for text, expected in (("return 0", 0), ("return 1", 1), ("return 0", 0)):
            changed = BRANCHES.replace("return 0", text)
            (tmp_path / "m.py").write_text(changed)
            asked = {"order": {"test_m.py::test_late": 3.0}, "patch": ["m.py", BRANCHES, changed]}
            assert started.run(["-q", "test_m.py"], 60.0, **asked)["code"] == expected
    finally:
        started.close()


def test_files_without_tests_are_no_mistake_and_broken_ones_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "ROOT", tmp_path)
    (tmp_path / "m.py").write_text(BRANCHES)
    (tmp_path / "test_m.py").write_text(TESTED)
    (tmp_path / "test_none.py").write_text("from m import sign\n")
    started = zygote.Zygote(tmp_path)
    try:
        recorded = reach.Reach(tmp_path / "held", ["m.py"], ["test_m.py", "test_none.py"])
        recorded.record(started)
        assert sorted(recorded.tests) == ["test_m.py::test_equal", "test_m.py::test_less", "test_m.py::test_one"]
        (tmp_path / "test_none.py").write_text("from m import signs\n")
        with pytest.raises(RuntimeError, match=r"(?s)^test_none\.py cannot be collected: .*cannot import name 'signs'"):
            reach.Reach(tmp_path / "held", ["m.py"], ["test_m.py", "test_none.py"]).record(started)
    finally:
        started.close()


def test_a_session_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "ROOT", tmp_path)
    monkeypatch.setattr(selection, "files_with_tests", lambda *given: ["test_m.py"])
    (tmp_path / "m.py").write_text(SOURCE)
    (tmp_path / "test_m.py").write_text("first")
    folder = tmp_path / "held"
    started = session.Session(folder, ["m.py"])
    one, other, *left = started.untested
    started._keep(one, False, "test_m.py::test")
    started._keep(other, True, "")
    again = session.Session(folder, ["m.py"])
    assert [mutant.key for mutant in again.untested] == [mutant.key for mutant in left]
    (tmp_path / "test_m.py").write_text("second")
    keys = [mutant.key for mutant in session.Session(folder, ["m.py"]).untested]
    assert set(keys) == {other.key, *(mutant.key for mutant in left)}, "a survivor is tested again by other tests"
    judged = session.Session(folder, ["m.py"], {other.key})
    assert other.key not in {mutant.key for mutant in judged.untested}, "one that no test can notice is not"
    assert judged.at_first == {one.key: False, other.key: True}
    of_own = session.Session(tmp_path / "other", ["m.py"], own=True)
    of_own._keep(one, True, "")
    assert of_own.at_first == {}, "what other tests say of it is not known yet"
    assert session.Session(tmp_path / "other", ["m.py"]).at_first == {}
    (tmp_path / "m.py").write_text(SOURCE + "\n\nfirst(1)\n")
    changed = session.Session(folder, ["m.py"])
    assert len(changed.untested) == len(changed.mutants) > len(started.mutants)


def test_a_sample_takes_as_many_of_each_package_in_the_order_of_all(tmp_path: Path) -> None:
    """A larger one goes on with the next ones; what a module has in all is known nevertheless."""
    names = [*selection.modules(("simulator/maths/linalg", "simulator/ui")), "server/bpe.py"]
    few, more, everything = (session.Session(tmp_path, names, sample=size).mutants for size in (3, 5, None))
    assert [selection.package(one.module) for one in few[:3]] != ["simulator/maths"] * 3
    for package in ("simulator/maths", "simulator/ui", "server"):
        of_package = [[one for one in found if selection.package(one.module) == package] for found in (few, more)]
        assert [len(found) for found in of_package] == [3, 5]
        assert of_package[0] == of_package[1][:3]
        assert of_package[1] == [one for one in everything if selection.package(one.module) == package][:5]


def test_own_tests_are_those_of_the_folder_or_of_the_nearest_around_it() -> None:
    assert selection.nearby("simulator/analysis/report/rows.py") == "tests/analysis/report"
    assert selection.nearby("simulator/maths/linalg/gram.py") == "tests/maths"
    assert selection.nearby("agents/messages/linear.py") == "tests/agents"
    assert selection.is_nearby("tests/maths/test_linear.py::test_x", "simulator/maths/linalg/gram.py")
    assert not selection.is_nearby("tests/agents/test_quorum.py", "simulator/maths/linalg/gram.py")
    files = selection.files_with_tests(["simulator/maths/linalg/gram.py"])
    assert files[0].startswith("tests/maths/")
    assert "tests/cli/test_run.py" in files
    assert not any(
        name.startswith(("tests/cli", "tests/maths")) for name in selection.files_with_tests(["server/bpe.py"])
    )
    own = selection.files_with_tests(["simulator/core/talks/question.py", "simulator/core/talks/talks.py"], own=True)
    assert own == sorted({*own})
    assert {Path(name).parent for name in own} == {Path("tests/core/talks")}


def test_the_page_gives_the_score_without_equivalents(tmp_path: Path) -> None:
    def survivor(verdict: str, why: str = "") -> dict[str, Any]:
        return {"key": "0", "line": 3, "change": "a | b -> b", "verdict": verdict, "why": why}

    found = [survivor("equivalent", "faster"), survivor(command.UNJUDGED)]
    page = tmp_path / "page.md"
    page.write_text(f"before {command.BEGIN} stale {command.END} after")
    entry = {"mutants": 50, "tested": 11, "killed_by_own": 7, "survived_at_first": 4, "survivors": found}
    command.write_page(
        page, {"a/m.py": entry, "a/n.py": {"mutants": 9, "tested": 0, "survived_at_first": 0, "survivors": []}}
    )
    text = page.read_text()
    assert "| `a` | 59 | 11 | 4 | 2 | 1 | 90.0 % | 70.0 % |" in text
    assert "| all | 59 | 11 | 4 | 2 | 1 | 90.0 % | 70.0 % |" in text
    assert "7 of 10 mutants that are not equivalent were killed: 70.0 %, 95 % interval 39.7 to 89.2 %" in text
    assert "| `a/m.py`, line 3: `a \\| b -> b` | equivalent: faster |" in text
    assert text.startswith("before <!--")
    assert text.endswith("--> after")
    assert "stale" not in text
