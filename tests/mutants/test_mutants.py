"""What counts as a mutant, and what becomes of results: without running any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cosmic_ray", reason="mutation tests need the extra `mutants`")

from tests.mutants import __main__ as command
from tests.mutants import operators, selection, session

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


def test_every_module_has_tests_that_exist() -> None:
    found = list(selection.modules())
    assert len(found) > 90
    assert all((selection.ROOT / place).exists() for module in found for place in selection.tests_of(module))
    assert selection.tests_of("server/async_kernel_ucb.py") != selection.tests_of("server/duets.py")


def test_a_session_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "ROOT", tmp_path)
    monkeypatch.setattr(selection, "tests_of", lambda module: ("test_m.py",))
    (tmp_path / "m.py").write_text(SOURCE)
    (tmp_path / "test_m.py").write_text("first")
    folder = tmp_path / "held"
    started = session.Session(folder, ["m.py"])
    one, other, *left = started.untested
    started._keep(one, False)
    started._keep(other, True)
    again = session.Session(folder, ["m.py"])
    assert [mutant.key for mutant in again.untested] == [mutant.key for mutant in left]
    (tmp_path / "test_m.py").write_text("second")
    keys = [mutant.key for mutant in session.Session(folder, ["m.py"]).untested]
    assert set(keys) == {other.key, *(mutant.key for mutant in left)}, "a survivor is tested again by other tests"
    (tmp_path / "m.py").write_text(SOURCE + "\n\nfirst(1)\n")
    changed = session.Session(folder, ["m.py"])
    assert len(changed.untested) == len(changed.mutants) > len(started.mutants)


def test_the_page_gives_the_score_without_equivalents(tmp_path: Path) -> None:
    def survivor(verdict: str, why: str = "") -> dict[str, Any]:
        return {"line": 3, "change": "a | b -> b", "verdict": verdict, "why": why}

    found = [survivor("equivalent", "faster"), survivor(command.UNJUDGED)]
    page = tmp_path / "page.md"
    page.write_text(f"before {command.BEGIN} old {command.END} after")
    command.write_page(page, {"m.py": {"mutants": 50, "tested": 11, "survivors": found}})
    text = page.read_text()
    assert "| all | 50 | 11 | 9 | 2 | 1 | 90.0 % |" in text
    assert "| `m.py`, line 3: `a \\| b -> b` | equivalent: faster |" in text
    assert text.startswith("before <!--")
    assert text.endswith("--> after")
    assert "old" not in text
