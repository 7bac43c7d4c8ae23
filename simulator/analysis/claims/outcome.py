"""What a claim came to: the numbers that the repository keeps, and the verdict that follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from coband.simulator.analysis.claims.claim import Size
from coband.simulator.analysis.claims.conditions import Finding
from coband.simulator.experiments.statistics.evidence import Evidence, adjusted

Verdict = Literal["holds", "does not hold", "undecided", "not run"]
LEVEL = 0.05
"""Of the tests of one claim, and the false discovery rate over all of them."""
ALONE = 0.004
"""Level at which a claim needs no more replications: it stays decided beside 200 others if half of them are decided.
Benjamini and Yekutieli's procedure rejects the smaller half of m p-values if all of them are at most
LEVEL / (2 (1 + 1/2 + ... + 1/m)), 0.0043 for m = 200."""
DIGITS = 16
"""Of a fingerprint that results files keep."""


@dataclass(frozen=True)
class Outcome:
    """One claim after its studies have run.

    Attributes:
        claim: such as ``duets/figure_1a_regret``.
        size: full, quick or toy.
        findings: one per condition.
        looks: how often a verdict is tried at most; each p-value counts so many times.
        replications: of the study with the fewest.
        cpu_hours: of all its jobs.
        reason: why it was not run, or not to the end; empty if it was.
        cost_hours: estimate of what a verdict still costs, where that is known.
        fingerprints: study -> variant -> one for each replication.
        origin: versions, commit, date.
        settings: digest of what it was tried with; empty where that was not noted.
    """

    claim: str
    size: Size
    findings: Sequence[Finding]
    looks: int
    replications: int
    cpu_hours: float
    reason: str = ""
    cost_hours: float | None = None
    fingerprints: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    origin: Mapping[str, Any] = field(default_factory=dict)
    settings: str = ""

    @property
    def holds(self) -> float:
        """The p-value of the hypothesis that the claim is false: all of its conditions have to hold."""
        return self._counted(max((one.evidence.holds for one in self.findings), default=1.0))

    @property
    def fails(self) -> float:
        """The p-value of the hypothesis that the claim is true: one of its conditions fails."""
        return self._counted(len(self.findings) * min((one.evidence.fails for one in self.findings), default=1.0))

    @property
    def p(self) -> float:
        """The p-value of the verdict that is nearer, for either of the two: twice the smaller one."""
        return min(1.0, 2 * min(self.holds, self.fails))

    @property
    def decided(self) -> bool:
        """Whether it is decided so clearly that its verdict stands among many claims (`ALONE`)."""
        return self.p <= ALONE

    @property
    def needed(self) -> int | None:
        """About how many replications decide it; None if that is not known."""
        if self.fails < self.holds:
            against = [one.evidence.needed for one in self.findings if one.evidence.fails < one.evidence.holds]
            known = [min((n for n in against if n is not None), default=None)]
        else:
            known = [one.evidence.needed for one in self.findings]
        found = None if not known or None in known else max(n for n in known if n is not None)
        return None if found is not None and found <= self.replications else found

    def _counted(self, p: float) -> float:
        return min(1.0, self.looks * p)

    def to_json(self) -> dict[str, object]:
        """Plain data for a results file."""
        found = asdict(self)
        found["findings"] = [asdict(one) for one in self.findings]
        return found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Outcome:
        """What :meth:`to_json` gave."""
        findings = [
            Finding(
                one["text"],
                one["estimate"],
                None if one["interval"] is None else (one["interval"][0], one["interval"][1]),
                one["effect"],
                one["count"],
                Evidence(**one["evidence"]),
            )
            for one in data["findings"]
        ]
        return cls(**{**data, "findings": findings})


def verdicts(outcomes: Sequence[Outcome]) -> list[Verdict]:
    """The verdicts on several claims at once, with a false discovery rate of at most `LEVEL`.

    By the procedure of Benjamini and Yekutieli (2001); what was not run takes no part.
    """
    run = [one for one in outcomes if one.replications > 0]
    corrected = dict(zip((one.claim for one in run), adjusted([one.p for one in run]), strict=True))
    return [_verdict(one, corrected.get(one.claim)) for one in outcomes]


def _verdict(outcome: Outcome, corrected: float | None) -> Verdict:
    if corrected is None:
        return "not run"
    if corrected > LEVEL:
        return "undecided"
    return "holds" if outcome.holds < outcome.fails else "does not hold"
