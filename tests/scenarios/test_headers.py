"""Headers of scenarios hold settings; what was found is in results files, with its interval."""

import re
from pathlib import Path

from tests.every import every

SCENARIOS = Path(__file__).parents[2] / "coband" / "scenarios"
FOUND = re.compile(
    r"\b(seen|measured|found) (in|on|here|\()|± ?\d|\d ?±|\b(one|\d+|two|six|seven) replications?\b.*\d", re.IGNORECASE
)
SIZES = re.compile(r"The paper's sizes|Quick variant")
"""Headers that say how many replications a paper has."""


@every("file", sorted(SCENARIOS.rglob("*.yaml")), ids=lambda file: str(file.relative_to(SCENARIOS)))
def test_a_header_tells_no_results(file: Path) -> None:
    comments = [line for line in file.read_text(encoding="utf-8").splitlines() if line.lstrip().startswith("#")]
    assert not [line for line in comments if FOUND.search(line) and not SIZES.search(line)]
