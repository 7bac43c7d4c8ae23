"""Results files: what one claim writes leaves what others have written."""

import json
from pathlib import Path
from typing import Any

from coband.extensions.evidence.claims import results
from coband.extensions.evidence.claims.outcome import Outcome


def outcome(name: str, **fingerprints: list[str]) -> Outcome:
    return Outcome(f"paper/{name}", "full", [], 3, 0.1, fingerprints={"study": fingerprints})


def jobs(where: Path) -> dict[str, list[str]]:
    return json.loads((where / "paper.json").read_text())["jobs"]["study"]


def test_claims_about_one_study_keep_each_others_jobs(tmp_path: Path) -> None:
    results.write(tmp_path, [outcome("first", A=["1", "2", "3"], B=["4"])], {})
    results.write(tmp_path, [outcome("second", A=["1"], C=["5", "6"])], {})
    assert jobs(tmp_path) == {"A": ["1", "2", "3"], "B": ["4"], "C": ["5", "6"]}
    assert results.read(tmp_path)["paper/first"].fingerprints["study"]["B"] == ["4"]


def test_jobs_that_have_changed_take_the_place_of_the_earlier_ones(tmp_path: Path) -> None:
    results.write(tmp_path, [outcome("first", A=["1", "2", "3"], B=["4"])], {})
    results.write(tmp_path, [outcome("first", A=["7", "8"], B=["4", "9"])], {})
    assert jobs(tmp_path) == {"A": ["7", "8"], "B": ["4", "9"]}


def test_lines_of_which_there_are_no_jobs_at_hand_stay(tmp_path: Path) -> None:
    def figure(**lines: list[int]) -> dict[str, Any]:
        drawn = [{"label": label, "x": x, "mean": x, "replications": 3} for label, x in lines.items()]
        return {"title": "regret", "panels": [{"title": "(a)", "lines": drawn}]}

    results.write(tmp_path, [], {"paper": [figure(A=[1, 2], B=[1, 2, 3]), {"title": "rounds", "panels": []}]})
    results.write(tmp_path, [], {"paper": [figure(A=[3, 4], B=[5], C=[6])]})
    first, second = results.curves(tmp_path, "paper")
    assert first == figure(A=[3, 4], B=[1, 2, 3], C=[6])
    assert second["title"] == "rounds"
