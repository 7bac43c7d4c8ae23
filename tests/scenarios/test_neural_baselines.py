"""nu of Neural UCB and Neural TS: in scenarios that of Dai et al. 2023, in claims about its code that of the stored
runs."""

import re
from pathlib import Path

import yaml

from coband.extensions.evidence.claims import reading
from coband.extensions.evidence.claims.claim import ClaimedStudy
from tests.every import every

FOLDER = Path(__file__).parents[2] / "scenarios" / "fn_ucb"
ENTRIES = {file.stem: yaml.safe_load(file.read_text(encoding="utf-8"))["algorithms"] for file in FOLDER.glob("*.yaml")}
NEURAL = {"neural_ucb", "neural_ts"}
COMPARED = sorted(name for name, entries in ENTRIES.items() if NEURAL & {one["algorithm"] for one in entries})
STORED = 0.01
"""In the names of all stored runs of the two, such as ``..._cosine_..._nu_0.01_train_steps_30_neural_ucb.pkl``."""


def studies_of_the_public_code() -> dict[str, tuple[ClaimedStudy, set[str]]]:
    """Studies of the claims about the public code and of its figures, with the labels of Neural UCB and TS in them."""
    found = {}
    for placed in reading.claims():
        if placed.paper == "fn_ucb" and placed.claim.source == "public code":
            labels = {term.label for term in placed.claim.terms()}
            found[placed.name] = next(iter(placed.claim.studies.values())), labels
    for figure in reading.papers()["fn_ucb"].figures:
        for panel in figure.panels if "as in the public code" in figure.title else ():
            found[f"{figure.where} {panel.title}"] = panel.study, {term.label for term in panel.labels}
    return {name: (study, labels & {"NeuralUCB", "NeuralTS"}) for name, (study, labels) in found.items()}


@every("name", COMPARED)
def test_all_methods_have_the_printed_parameters(name: str) -> None:
    """Sections 5.1 and 5.2: the same lambda and nu_TK, which is nu2 of FN-UCB, for all methods."""
    (printed,) = {(one["lam"], one["nu2"]) for one in ENTRIES[name] if one["algorithm"] == "fn_ucb"}
    assert {(one["lam"], one["nu"]) for one in ENTRIES[name] if one["algorithm"] in NEURAL} == {printed}


def test_claims_about_the_public_code_have_its_nu() -> None:
    compared = {name: found for name, found in studies_of_the_public_code().items() if found[1]}
    assert len(compared) >= 14
    for name, (study, labels) in compared.items():
        nu = {one["label"]: one["nu"] for one in ENTRIES[study.scenario.removeprefix("fn_ucb/")] if "nu" in one}
        for key, value in study.set.items():
            if match := re.fullmatch(r"algorithms\.(\w+)\.nu", key):
                nu[match[1]] = value
        assert {nu[label] for label in labels} == {STORED}, name
