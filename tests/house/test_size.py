"""How large the house may be: every room has a ceiling, and ceilings only fall.

A room is a folder with Python files of its own; its ceiling stands in ``sizes.json``. Whoever needs more lines in one
room takes them from another, since the sums stay. ``python -m tests.house.test_size`` lowers ceilings to what is there.
"""

import json
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("sizes.json")
SUMS = {"product": 75_420, "benchmarks": 1_900, "tests": 53_350}
"""The most lines of all rooms of a kind together."""
SLACK = 20
"""A ceiling that is further above its room than so many lines is to be lowered."""


def kind(room: str) -> str:
    """What a room belongs to."""
    return room.partition("/")[0].replace("coband", "product")


def lines() -> Counter[str]:
    """Lines of Python by room."""
    found: Counter[str] = Counter()
    for top in ("benchmarks", "coband", "tests"):
        for path in (ROOT / top).rglob("*.py"):
            found[path.parent.relative_to(ROOT).as_posix()] += path.read_bytes().count(b"\n")
    return found


def ceilings() -> dict[str, int]:
    """The most lines of each room."""
    found: dict[str, int] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def test_no_room_is_larger_than_its_ceiling() -> None:
    found, allowed = lines(), ceilings()
    larger = {
        room: f"{size} lines, at most {allowed.get(room, 0)}"
        for room, size in found.items()
        if size > allowed.get(room, 0)
    }
    assert not larger, "take lines away here or from another room, whose ceiling falls by as many"


def test_ceilings_fall_with_their_rooms() -> None:
    found = lines()
    high = {
        room: f"{size}, and the room has {found[room]}"
        for room, size in ceilings().items()
        if size > found[room] + SLACK
    }
    assert not high, "python -m tests.house.test_size lowers them"


def test_all_rooms_together_keep_to_their_sum() -> None:
    sums: Counter[str] = Counter()
    for room, size in ceilings().items():
        sums[kind(room)] += size
    assert {name: sums[name] for name in SUMS if sums[name] > SUMS[name]} == {}


def main() -> None:
    """Lower ceilings to what is there; new rooms and larger ones are written by hand."""
    found = lines()
    old = ceilings() if FILE.exists() else dict(found)
    kept = {room: min(size, found[room]) for room, size in sorted(old.items()) if found[room]}
    FILE.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
