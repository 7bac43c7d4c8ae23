"""The results of coband's own algorithms, which come with each suite as one compressed table.

It has what scores and ranks need: the numbers that are compared, means of the others, and how many settings tuning
tried of which parameters. It is made from files in the checkout, in ``results``.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable

import numpy as np

from coband.extensions.evidence.suite.submission import MEASURED, Candidate, Outcome, Submission
from coband.extensions.evidence.suite.suites import HERE


def shipped(suite: str) -> list[Submission]:
    """Return the results that come with a suite; none where it has no table."""
    table = HERE / f"{suite}.json.xz"
    return unpacked(table.read_bytes()) if table.is_file() else []


def compact(submission: Submission) -> Submission:
    """Leave out fingerprints, results of the settings that tuning tried, and single values whose means are shown."""
    tests = {
        scenario: {label: _compact(test) for label, test in labels.items()}
        for scenario, labels in submission.tests.items()
    }
    return submission.model_copy(update={"tests": tests})


def _compact(test: Outcome) -> Outcome:
    settings = [dict.fromkeys(test.tuned), *({} for _ in test.candidates[1:])] if test.candidates else []
    candidates = [Candidate(settings=one, mean=None, fingerprints=[]) for one in settings]
    values = {key: [float(np.mean(found))] if key in MEASURED else found for key, found in test.values.items()}
    return test.model_copy(update={"candidates": candidates, "values": values, "fingerprints": []})


def packed(submissions: Iterable[Submission]) -> bytes:
    """Return the table of some results."""
    found = [compact(one).model_dump(mode="json", exclude_defaults=True) for one in submissions]
    text = json.dumps(found, separators=(",", ":"))
    return lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)


def unpacked(table: bytes) -> list[Submission]:
    """Return the results in a table."""
    return [Submission.model_validate(one) for one in json.loads(lzma.decompress(table))]
