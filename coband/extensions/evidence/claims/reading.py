"""Reading claims: files ``papers/<paper>/<claim>.yaml``, each mistake with its place in the file."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import JsonSchemaValue

from coband import ScenarioError
from coband.extending import Explainer, RequestError, Wording, read_scenario, yaml_nodes
from coband.extensions.evidence.claims.claim import Claim, ClaimedStudy, Paper, PlacedClaim

PAPER = "paper"
ALL = "all"
ABSENT = (
    "the claims of papers are in coband's checkout and not in its wheel: clone the repository, and install it by "
    "`pip install -e .`; a claim of your own is given by its file."
)


class UnknownClaimError(RequestError):
    """No claim or paper has this name, or two have it; the text lists the nearest ones."""


def folder() -> Path:
    """The claims that come with coband's checkout; a wheel has none."""
    return Path(__file__).parents[1] / "papers"


def papers() -> dict[str, Paper]:
    """The papers by the name of their folder, in alphabetical order.

    Raises:
        ScenarioError: a file is not valid.
    """
    found = sorted(folder().glob(f"*/{PAPER}.yaml"))
    return {path.parent.name: _with_files(_read(path, Paper), path.parent) for path in found}


def claims() -> list[PlacedClaim]:
    """All claims, paper by paper, in the order of their names.

    Raises:
        ScenarioError: a file is not valid.
    """
    return [read_claim(path) for path in sorted(folder().glob("*/*.yaml")) if path.stem != PAPER]


def read_claim(path: Path) -> PlacedClaim:
    """One claim.

    Raises:
        ScenarioError: the file is not valid; with every mistake.
    """
    claim = _read(path, Claim)
    studies = {name: _located(study, path.parent) for name, study in claim.studies.items()}
    placed = claim.model_copy(update={"studies": studies})
    return PlacedClaim(paper=path.parent.name, name=path.stem, path=path, claim=placed)


def _with_files(paper: Paper, folder: Path) -> Paper:
    """The paper whose panels may be about files, named from its folder."""
    figures = []
    for figure in paper.figures:
        panels = [panel.model_copy(update={"study": _located(panel.study, folder)}) for panel in figure.panels]
        figures.append(figure.model_copy(update={"panels": panels}))
    return paper.model_copy(update={"figures": figures})


def _located(study: ClaimedStudy, folder: Path) -> ClaimedStudy:
    """A study whose scenario may be a file, named from the folder of the claim."""
    file = folder / study.scenario
    return study.model_copy(update={"scenario": str(file)}) if file.is_file() else study


def chosen(names: Sequence[str]) -> list[PlacedClaim]:
    """The claims that a command is about.

    Args:
        names: papers, claims (``paper/claim``, or the claim's name alone where that is clear), files, or "all".

    Raises:
        UnknownClaimError: a name means nothing, or two claims have one name.
        ScenarioError: a file is not valid.
    """
    known = claims()
    found: dict[str, PlacedClaim] = {}
    for name in names:
        meant = _meant(name, known)
        if not meant and not folder().is_dir():
            raise UnknownClaimError(ABSENT)
        if not meant:
            words = [*dict.fromkeys(one.paper for one in known), *(one.key for one in known)]
            near = difflib.get_close_matches(name, words, n=3, cutoff=0.4)
            advice = f"did you mean {' or '.join(near)}?" if near else "`coband reproduce --list` shows all."
            raise UnknownClaimError(f"no paper and no claim {name!r}; {advice}")
        for one in meant:
            if found.setdefault(one.key, one).path != one.path:
                raise UnknownClaimError(
                    f"{found[one.key].path} and {one.path} are both called {one.key}, by which their results are kept; "
                    "rename one of the files, or of their folders."
                )
    return list(found.values())


def _meant(name: str, known: Sequence[PlacedClaim]) -> list[PlacedClaim]:
    if name == ALL:
        return list(known)
    if name.endswith(".yaml") and Path(name).is_file():
        return [read_claim(Path(name).absolute())]
    return [one for one in known if name in (one.paper, one.key, one.name)]


Model = TypeVar("Model", bound=BaseModel)


def _read(path: Path, model: type[Model]) -> Model:
    return _parsed(read_scenario(path)[0], str(path), model)  # type: ignore[return-value]


@cache
def _parsed(text: str, path: str, model: type[BaseModel]) -> BaseModel:
    root, problems = yaml_nodes.read(text, path)
    if problems:
        raise ScenarioError(problems)
    try:
        return model.model_validate_json(json.dumps(yaml_nodes.plain(root)), strict=False)
    except ValidationError as error:
        explainer = Explainer(root, Wording(_schema(model)), {})
        raise ScenarioError(explainer.explain(error.errors(include_url=False))) from None


@cache
def _schema(model: type[BaseModel]) -> JsonSchemaValue:
    return model.model_json_schema()
