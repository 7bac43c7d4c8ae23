"""The documentation stays short enough to be read."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def words(pages: list[Path]) -> int:
    return sum(len(re.findall(r"\S*\w\S*", page.read_text(encoding="utf-8"))) for page in pages)


def test_doors_are_read_in_two_minutes() -> None:
    doors = sorted((DOCS / "doors").glob("*.md"))
    assert [page.stem for page in doors] == ["algorithm", "devices", "paper"]
    assert [page.stem for page in doors if words([page]) > 400] == []


def test_pages_for_users_are_read_in_two_hours() -> None:
    """Tables' bars and fences of code are not words; what programs write (the reference, claims) is not counted."""
    pages = [page for folder in (DOCS, DOCS / "doors", DOCS / "howto") for page in folder.glob("*.md")]
    assert words(pages) <= 22_000


def test_decisions_are_few_and_short() -> None:
    records = sorted((DOCS / "decisions").glob("0*.md"))
    assert len(records) <= 30
    assert words([*records, DOCS / "decisions" / "index.md"]) <= 12_000
    assert words([DOCS / "decisions" / "index.md"]) <= 300
