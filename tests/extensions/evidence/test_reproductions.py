"""The pages about claims are those that the results files give."""

from pathlib import Path

from coband.extensions.evidence.claims import pages, reading, results
from coband.extensions.evidence.claims.results import is_of_other_settings
from tests.versions import at_least

FOLDER = Path(__file__).parents[3] / "docs" / "reproductions"


def test_the_pages_are_up_to_date() -> None:
    expected = dict(pages.texts(FOLDER / "results"))
    found = {file.name: file.read_text(encoding="utf-8") for file in FOLDER.iterdir() if file.is_file()}
    assert found.keys() == expected.keys()
    if not at_least("matplotlib", "3.11"):  # which rounds coordinates otherwise
        found, expected = (
            {name: text for name, text in files.items() if not name.endswith(".svg")} for files in (found, expected)
        )
    assert found == expected


def test_results_are_of_claims_that_exist() -> None:
    known = {claim.key for claim in reading.claims()}
    assert set(results.read(FOLDER / "results")) <= known


def test_no_result_is_of_other_settings() -> None:
    outcomes = results.read(FOLDER / "results")
    changed = [
        one.key for one in reading.claims() if one.key in outcomes and is_of_other_settings(outcomes[one.key], one)
    ]
    assert not changed, f"run them again: coband reproduce {' '.join(changed)}"


def test_the_readme_tells_the_latest_verdicts() -> None:
    readme = (FOLDER.parents[1] / "README.md").read_text(encoding="utf-8")
    assert pages.badge(FOLDER / "results") in " ".join(readme.split())
