"""The claims that come with coband: their files, their studies at all sizes, and their mechanics at toy size."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from coband.extensions.evidence.claims import reading
from coband.extensions.evidence.claims.claim import Claim, ClaimedStudy, PlacedClaim, Replications, Size
from coband.extensions.evidence.claims.outcome import Outcome
from coband.extensions.evidence.claims.reproduction import Reproduction
from coband.extensions.evidence.claims.samples import StudySamples
from coband.extensions.evidence.claims.studies import key_of, loaded, needed
from coband.simulator.experiments.registry.bibliography import library
from coband.simulator.experiments.runs.executor import InProcess
from tests.data_files import DATA, data_file
from tests.every import every
from tests.everyday import slow
from tests.golden import DATA_FILES

CLAIMS = reading.claims()
PAPERS = reading.papers()
RUNNABLE = [placed for placed in CLAIMS if placed.claim.not_run is None]
SIZES: tuple[Size, ...] = ("full", "quick", "toy")
SCALED = re.compile(
    r"agents\.count|schedule\.(turns|duration)|problem\.domain\.points"
    r"|problem\.drift\.at|algorithms\.[^.]+\.(alpha_ramp|train_until|steps|window|gamma|posterior\.size)"
)
"""Keys that make a study smaller; what goes with the turns does so, too: ramps, the end of training, drift, memory."""
REPLICATIONS = 2
LONG = """
adversity/study_async_defended adversity/study_async_price adversity/study_async_sum adversity/study_privacy_local
adversity/study_privacy_tree async_kernel_ucb/figure_2_scalars_f1 async_kernel_ucb/lemma_4_1_dictionary
async_lin_ucb/theorem_scalars_turns cope_kb/figure_3_closeness cope_kb/theorem_1_rounds faults/study_capacity_time
pls/public_code_delb
"""
"""Claims whose toys take longest; other claims meet all that they meet."""


def everyday_ones() -> Iterator[str]:
    """Claims that together meet each paper, quantifier, kind of condition and metric; conditions take any metric alike.

    That scenarios run at a small size is what the counts on file say.
    """
    met = set[object]()
    for placed in RUNNABLE:
        claim = placed.claim
        own: set[object] = {placed.paper, ("quantifier", claim.quantifier), ("at equal", claim.at_equal is None)}
        own |= {part for one in claim.conditions for part in (("kind", one.kind), ("of", getattr(one, "of", None)))}
        if placed.key not in LONG.split() and not own <= met:
            met |= own
            yield placed.key


EVERYDAY = frozenset(everyday_ones())
OURS = {"faults", "adversity", "fleet", "k_armed"}
"""Claims about studies of coband's own stand beside those of papers."""


def key(placed: PlacedClaim) -> str:
    return placed.key


def of_paper(paper: str) -> list[PlacedClaim]:
    return [placed for placed in RUNNABLE if placed.paper == paper]


def panel_studies(paper: str) -> list[ClaimedStudy]:
    return [panel.study for figure in PAPERS[paper].figures for panel in figure.panels]


def test_every_paper_has_its_claims() -> None:
    assert len(CLAIMS) >= 60
    assert {placed.paper for placed in CLAIMS} == set(PAPERS)
    assert len(PAPERS.keys() - OURS) == 8


@every("placed", CLAIMS, ids=key)
def test_names_and_texts(placed: PlacedClaim) -> None:
    claim = placed.claim
    where = "abstract|figure|theorem|lemma|remark|section|appendix|public_code|study"
    assert re.fullmatch(rf"({where})_[a-z0-9_]+", placed.name)
    assert 10 < len(claim.title) <= 110
    assert claim.title[-1] != "."
    assert claim.statement.endswith(".")
    assert claim.where
    assert (claim.source == "coband") == (placed.paper in OURS) == placed.name.startswith("study_")


@every("placed", RUNNABLE, ids=key)
def test_smaller_studies_change_sizes_alone(placed: PlacedClaim) -> None:
    for study in placed.claim.studies.values():
        assert_sizes_alone(study)
    used = {placed.claim.study_of(term).scenario for term in placed.claim.terms()}
    assert used == {study.scenario for study in placed.claim.studies.values()}


def assert_sizes_alone(study: ClaimedStudy) -> None:
    assert [name for name in [*study.quick, *study.toy] if not SCALED.fullmatch(name)] == []
    values = [*study.quick.values(), *study.toy.values()]
    parts = [part for one in values for part in (one if isinstance(one, list) else [one])]
    assert all(isinstance(part, int | float) and part > 0 for part in parts)


def at_all_settings(placed: PlacedClaim) -> list[Claim]:
    return [placed.claim.at(setting) for setting in placed.claim.settings()]


@every("size", ["full", slow("quick"), "toy"])
@every("paper", PAPERS)
def test_every_term_means_one_variant(paper: str, size: Size, monkeypatch: pytest.MonkeyPatch) -> None:
    if paper == "fleet":  # its scenarios can be read only where their files are
        data_file(DATA_FILES["phones"])
        monkeypatch.setenv("COBAND_DATA", str(DATA))
    claims = of_paper(paper)
    studies = needed([one for placed in claims for one in at_all_settings(placed)], size)
    for placed in claims:
        for claim in at_all_settings(placed):
            for term in claim.terms():
                variants = studies[key_of(claim.study_of(term), size)].sweep.variants
                assert len(StudySamples(variants, {}).matching(term.label, term.at)) == 1, f"{placed.key}: {term}"


@pytest.mark.parametrize("paper", sorted(PAPERS.keys() - OURS))
def test_papers_and_their_figures(paper: str) -> None:
    found = PAPERS[paper]
    assert re.search(r" 20\d\d\)$", found.title)
    assert found.cites in library()
    assert found.figures
    for study in panel_studies(paper):
        assert_sizes_alone(study)
    for figure in found.figures:
        for panel in figure.panels:
            wanted = [(term.label, {**panel.at, **term.at}) for term in panel.labels]
            for size in SIZES:
                sweep = loaded(panel.study, size, wanted).sweep
                samples = StudySamples(sweep.variants, {})
                for label, at in wanted:
                    own = samples.matching(label, at)
                    keys = {parameter.key for variant in own for parameter in variant.parameters}
                    assert len(own) == 1 or panel.against in keys, f"{panel.title}: {label}"


class Toys:
    """The claims of each paper at toy size, everyday ones apart: their studies run once, when the first claim asks.

    Args:
        place: where finished jobs are kept.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._papers: dict[tuple[str, bool], Reproduction] = {}

    def outcome(self, placed: PlacedClaim) -> Outcome:
        part = placed.paper, placed.key in EVERYDAY
        if part not in self._papers:
            claims = [_short(one) for one in of_paper(placed.paper) if (one.key in EVERYDAY) == part[1]]
            self._papers[part] = Reproduction(claims, self._place / placed.paper, InProcess(), size="toy")
            self._papers[part].run()
        return self._papers[part].outcome(_short(placed))


def _short(placed: PlacedClaim) -> PlacedClaim:
    """A claim with few replications, also of those that choose its settings."""
    few = Replications(first=REPLICATIONS, most=REPLICATIONS)
    tuning = placed.claim.tuning.model_copy(update={"replications": 1})
    return placed.model_copy(update={"claim": placed.claim.model_copy(update={"replications": few, "tuning": tuning})})


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toys]:
    """Toy studies, with the real data files of this machine in the directory of downloads."""
    data = tmp_path_factory.mktemp("data")
    for name in DATA_FILES:
        file = DATA / DATA_FILES[name]
        if file.is_file() and not (data / name).exists():
            (data / name).symlink_to(file.parent, target_is_directory=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COBAND_DATA", str(data))
        yield Toys(tmp_path_factory.mktemp("toys"))


@every("placed", [one if one.key in EVERYDAY else slow(one) for one in RUNNABLE], ids=key)
def test_every_condition_gives_a_finding(placed: PlacedClaim, toys: Toys) -> None:
    names = [study.scenario.partition("/")[2] for study in placed.claim.studies.values()]
    for data in {file for name in names for known, file in DATA_FILES.items() if name.startswith(known)}:
        data_file(data)
    outcome = toys.outcome(placed)
    if placed.claim.at_equal is not None and not outcome.chosen:  # toys may have nothing in common
        assert "the frontiers do not overlap" in outcome.reason
        return
    assert outcome.reason == ""
    assert outcome.replications == REPLICATIONS
    settings = 1 if placed.claim.quantifier in (None, "tuned") else len(outcome.chosen or placed.claim.settings())
    assert len([one for one in outcome.findings if not one.given]) == len(placed.claim.conditions) * settings
    for finding in outcome.findings:
        assert finding.text
        assert finding.estimate is not None
        assert finding.count == REPLICATIONS


def test_an_unknown_name_is_told_the_three_nearest() -> None:
    with pytest.raises(reading.UnknownClaimError, match=r"no claim 'fn_ucb/figure_1'; did you mean") as error:
        reading.chosen(["fn_ucb/figure_1"])
    assert str(error.value).count(" or ") == 2
