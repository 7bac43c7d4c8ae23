"""The studies that claims need: each scenario with its settings once, with the variants that some claim is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coband.extending import ResultCache, Study, Variant, address, code_version, footing, load_study
from coband.extensions.evidence.claims.claim import Claim, ClaimedStudy, Size
from coband.extensions.evidence.claims.condition import Term
from coband.extensions.evidence.claims.samples import Sample, SampleError, StudySamples

LONGEST = 60
"""Characters of a scenario's name in the name of a study."""
Key = tuple[str, tuple[str, ...]]
"""A scenario and its settings."""


def key_of(study: ClaimedStudy, size: Size) -> Key:
    """What tells studies apart."""
    return study.scenario, study.settings(size)


@dataclass(frozen=True)
class Needed:
    """A study with the variants that claims are about.

    Attributes:
        key: what tells it apart.
        sweep: what there is to run.
    """

    key: Key
    sweep: Study

    @property
    def name(self) -> str:
        """A name for its directory: the scenario's, with a digest of the settings."""
        scenario, settings = self.key
        stem = scenario.removesuffix(".yaml").strip("/").replace("/", "-")[-LONGEST:]
        return f"{stem}-{code_version.sha256(scenario, *settings)[:8]}"

    def part(self, numbers: Iterable[int], replications: Iterable[int]) -> Study:
        """Some variants of the study, by their numbers, with some replications."""
        chosen = [variant for variant in self.sweep.variants if variant.number in set(numbers)]
        return replace(self.sweep, variants=_numbered(chosen), numbers=tuple(replications))

    def numbers(self, term: Term) -> list[int]:
        """The numbers of the variants that a term means."""
        return [variant.number for variant in StudySamples(self.sweep.variants, {}).matching(term.label, term.at)]

    def samples(
        self, cache: ResultCache, starts: Iterable[int] = (0,), known: StudySamples | None = None
    ) -> StudySamples:
        """What is known of it: of each variant the finished replications that follow one another from some starts on.

        Args:
            cache: where finished jobs are.
            starts: the first replications of such rows.
            known: what was known before; it is not read again.
        """
        before = {} if known is None else known.found
        found = {one.number: dict(before.get(one.number, {})) for one in self.sweep.variants}
        for variant in self.sweep.variants:
            for start in starts:
                _follow(variant, start, found[variant.number], cache)
        return StudySamples(self.sweep.variants, found)


def _follow(variant: Variant, replication: int, found: dict[int, Sample], cache: ResultCache) -> None:
    """Take in the finished replications from one on."""
    while True:
        if replication not in found:
            done = cache.get(address(variant.digest, replication))
            if done is None:
                return
            series, scenario = list(done.tables.get("series", ())), variant.scenario
            stops = footing.stops_itself(scenario.problem)
            found[replication] = Sample(done.record, series, scenario.agents.count, stops)
        replication += 1


def needed(claims: Iterable[Claim], size: Size) -> dict[Key, Needed]:
    """The studies of some claims.

    Raises:
        ScenarioError: a scenario is not valid with these settings.
        SampleError: a claim names a label or a value that its study does not have.
    """
    terms: dict[Key, list[Term]] = {}
    for one in claims:
        for term in one.terms():
            for _, study in one.studies_of(term):
                terms.setdefault(key_of(study, size), []).append(term)
    return {key: Needed(key, _restricted(whole(key), wanted)) for key, wanted in terms.items()}


def whole(key: Key) -> Study:
    """A study with all its variants."""
    scenario, settings = key
    return load_study(Path(scenario), settings)


def loaded(
    study: ClaimedStudy,
    size: Size,
    wanted: Sequence[tuple[str, Mapping[str, Any]]],
    load: Callable[[Key], Study] = whole,
) -> Needed:
    """One study with the variants that have these labels and values."""
    key = key_of(study, size)
    return Needed(key, _restricted(load(key), [Term(label=label, at=dict(at)) for label, at in wanted]))


def _restricted(sweep: Study, terms: Sequence[Term]) -> Study:
    """The variants that terms mean, renumbered; how often they run is not the scenario's business here."""
    everything = StudySamples(sweep.variants, {})
    wanted: dict[int, Variant] = {}
    for term in terms:
        matching = everything.matching(term.label, term.at)
        if not matching:
            known = "; ".join(variant.label for variant in sweep.variants)
            raise SampleError(f"{sweep.name} has no {term}; there are {known}.")
        wanted.update((variant.number, variant) for variant in matching)
    variants = _numbered([wanted[number] for number in sorted(wanted)])
    return replace(sweep, variants=variants, until=None, tuning=None)


def _numbered(variants: Iterable[Variant]) -> tuple[Variant, ...]:
    return tuple(replace(variant, number=number) for number, variant in enumerate(variants))
