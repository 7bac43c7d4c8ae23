"""The figures of hunts add up, whatever the code was, and hold no gap."""

import json
from itertools import islice
from pathlib import Path

from tests.extensions.conformance.hunt import __main__ as program
from tests.extensions.conformance.hunt.figures import COUNTS, HuntFigures, table
from tests.extensions.conformance.hunt.hunted import HUNTED

FOUND = {"schedules": 20, "impatient": 10, "runs": 60, "gave_up": 7}
FAMILIES = ("graph", "fixed")


def counted(figures: HuntFigures, family: str = "graph") -> tuple[int, int]:
    totals = figures.totals(family)
    return totals["schedules"], totals["runs"]


def test_a_hunt_goes_on_after_that_of_other_code(tmp_path: Path) -> None:
    file = tmp_path / "hunts.json"
    first = HuntFigures(file, "a")
    assert first.begin(FAMILIES) == {"graph": 0, "fixed": 0}
    first.add("graph", 0, FOUND)
    first.add("graph", 20, FOUND)
    second = HuntFigures(file, "b")
    assert second.begin(FAMILIES) == {"graph": 40, "fixed": 0}
    second.add("graph", 40, FOUND)
    again = HuntFigures(file, "b")
    assert again.begin(FAMILIES) == {"graph": 60, "fixed": 0}
    again.add("graph", 60, FOUND)
    assert counted(again) == (80, 240)
    assert [
        (one["code"], one["families"]["graph"]["first"], one["families"]["graph"]["last"]) for one in again.entries
    ] == [("a", 0, 40), ("b", 40, 80)]
    assert json.loads(file.read_text()) == again.entries


def test_the_same_seeds_again_with_other_code(tmp_path: Path) -> None:
    file = tmp_path / "hunts.json"
    first = HuntFigures(file, "a")
    first.begin(FAMILIES)
    first.add("graph", 0, FOUND)
    again = HuntFigures(file, "b")
    assert again.begin(FAMILIES, again=True) == {"graph": 0, "fixed": 0}
    again.add("graph", 0, FOUND)
    assert HuntFigures(file, "b").begin(FAMILIES) == {"graph": 20, "fixed": 0}
    assert counted(HuntFigures(file, "c")) == (40, 120)


def test_what_ends_early_waits_for_what_was_begun_before(tmp_path: Path) -> None:
    """A hunt that is stopped in between loses the later part, and has no gap."""
    file = tmp_path / "hunts.json"
    figures = HuntFigures(file, "a")
    figures.begin(FAMILIES)
    figures.add("graph", 20, FOUND)
    figures.add("fixed", 0, FOUND)
    assert HuntFigures(file, "a").begin(FAMILIES) == {"graph": 0, "fixed": 20}
    figures.add("graph", 0, FOUND)
    assert HuntFigures(file, "a").begin(FAMILIES) == {"graph": 40, "fixed": 20}


def test_what_is_left_is_hunted_in_all_families_in_turn(tmp_path: Path) -> None:
    figures = HuntFigures(tmp_path / "hunts.json", "a")
    names = list(HUNTED)
    found = list(islice(program.missing(figures, 40, again=False), 2 * len(names)))
    assert found == [*((name, 0) for name in names), *((name, 20) for name in names)]
    for name in names[1:]:
        figures.add(name, 0, FOUND)
        figures.add(name, 20, FOUND)
    assert list(program.missing(figures, 40, again=False)) == [(names[0], 0), (names[0], 20)]


def test_the_page_has_the_figures_of_the_file() -> None:
    figures = HuntFigures(program.FIGURES, "any")
    text = "\n".join(table(figures, {family: len(document["algorithms"]) for family, document in HUNTED.items()}))
    assert text in program.PAGE.read_text(encoding="utf-8")
    for family in HUNTED:
        counts = figures.totals(family)
        assert set(COUNTS) <= counts.keys()
        assert counts["schedules"] == sum(
            one["families"][family]["last"] - one["families"][family]["first"]
            for one in figures.entries
            if family in one["families"]
        )
