"""The documentation stays short enough to be read."""

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def words(pages: list[Path]) -> int:
    return sum(len(page.read_text(encoding="utf-8").split()) for page in pages)


def test_doors_are_read_in_two_minutes() -> None:
    doors = sorted((DOCS / "doors").glob("*.md"))
    assert [page.stem for page in doors] == ["algorithm", "devices", "paper"]
    assert [page.stem for page in doors if words([page]) > 400] == []
