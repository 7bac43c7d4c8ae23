"""Validating a scenario's document, section by section: every mistake is reported, with its place in the file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from coband.simulator.experiments.registry.registry import RESERVED, Registry, only
from coband.simulator.experiments.scenario.cross_checks import cross_check
from coband.simulator.experiments.scenario.document import FIXED, SWEEP_SECTIONS, document_model, json_schema
from coband.simulator.experiments.scenario.input_problems import InputProblem, ScenarioError
from coband.simulator.experiments.scenario.nodes import Node, place_of, plain
from coband.simulator.experiments.scenario.scenario import Scenario, ScenarioEntry
from coband.simulator.plugins.kinds import is_false_alarm, validated_strictly

if TYPE_CHECKING:
    from coband.simulator.experiments.scenario.explain import Explainer

Model = TypeVar("Model", bound=BaseModel)


@lru_cache(maxsize=256)
def _adapter(registry: Registry | None, key: str) -> TypeAdapter[Any]:
    """The validator of one section, so that a mistake in one section does not hide the mistakes of others.

    Args:
        registry: what the section can name; None if it is one of `FIXED`.
    """
    info = FIXED[key] if registry is None else document_model(registry).model_fields[key]
    section: Any = Annotated[info.annotation, info]
    if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
        info.annotation.model_rebuild()  # once, as the scenario is also written with it
    return TypeAdapter(section)


def _validated(registry: Registry, key: str, data: Any) -> Any:
    """Validate one section strictly: numbers, text and booleans are not converted into each other.

    Raises:
        ValidationError: the section is invalid.
    """
    return validated_strictly(_adapter(None if key in FIXED else registry, key), json.dumps(data))


class Validation:
    """The validation of one document.

    Attributes:
        sweep_sections: after `scenario`, the validated sections that only sweeps use.
    """

    def __init__(self, root: Node, registry: Registry, problems: list[InputProblem]) -> None:
        self._root, self._registry, self._problems = root, registry, problems
        self.sweep_sections: dict[str, Any] = {}

    @cached_property
    def _explainer(self) -> Explainer:
        from coband.simulator.experiments.scenario.explain import Explainer  # valid documents do without
        from coband.simulator.experiments.scenario.wording import Wording

        return Explainer(self._root, Wording(json_schema(self._registry)), self._registry.broken)

    def scenario(self, base: Path) -> Scenario:
        """Validate the document.

        Raises:
            ScenarioError: the document is invalid; the error lists every mistake.
        """
        valid = self._valid_sections()
        self._problems += cross_check(self._root, valid, self._registry)
        if self._problems:
            raise ScenarioError(self._problems)
        self.sweep_sections = {key: valid.pop(key) for key in SWEEP_SECTIONS}
        entries = tuple(map(self._entry, valid.pop("algorithms"), plain(self._root)["algorithms"]))
        return Scenario(**valid, algorithms=entries, base=base)

    def shapes(self, keys: Sequence[str]) -> list[InputProblem]:
        """Validate single sections, if they exist, and return the mistakes found so far."""
        data = plain(self._root)
        for key in keys:
            if key in data:
                self._section(key, data[key], {})
        return self._problems

    def _valid_sections(self) -> dict[str, Any]:
        found = self._without_mistakes()
        if found is not None:
            return found
        data, valid = plain(self._root), dict[str, Any]()
        known = document_model(self._registry).model_fields
        self._problems += [self._explainer.unknown_key((key,)) for key in data if key not in known]
        for key, info in known.items():
            if key in data:
                self._section(key, data[key], valid)
            elif info.is_required():
                self._problems.append(self._explainer.missing((), key))
            else:
                valid[key] = info.get_default(call_default_factory=True)
        return valid

    def _without_mistakes(self) -> dict[str, Any] | None:
        """The sections of a document in which each is valid; None of another one.

        Only the models of the algorithms and of the problem that the document names are built. To explain mistakes,
        all are needed.
        """
        data = plain(self._root)
        try:
            names = frozenset(str(entry["algorithm"]) for entry in data["algorithms"])
            registry = only(self._registry, names, str(data["problem"]["kind"]))
            known = document_model(registry).model_fields
            if not known.keys() >= data.keys():
                return None
            given = {key: _validated(registry, key, value) for key, value in data.items()}
            missing = {key: info.get_default(call_default_factory=True) for key, info in known.items()}
        except (KeyError, TypeError, ValidationError, OSError):
            return None
        return {**missing, **given} if all(key in given or not known[key].is_required() for key in known) else None

    def _section(self, key: str, data: Any, valid: dict[str, Any]) -> None:
        try:
            valid[key] = _validated(self._registry, key, data)
        except ValidationError as error:
            mistakes = error.errors(include_url=False)
            real = [item for item in mistakes if not is_false_alarm(item)]
            self._problems += self._explainer.explain(real or mistakes, (key,))
        except OSError as error:
            mark = place_of(self._root, key)
            self._problems.append(mark.problem((key,), f"{error.filename}: {error.strerror}"))

    def _entry(self, entry: Any, data: dict[str, Any]) -> ScenarioEntry:
        algorithm = self._registry.algorithms[entry.algorithm]
        parameters = {key: value for key, value in data.items() if key not in RESERVED}
        config = part_of(entry, algorithm.config, parameters)
        return ScenarioEntry(algorithm, entry.label or algorithm.name, config, entry.ties)


def part_of(entry: BaseModel, model: type[Model], data: Mapping[str, Any]) -> Model:
    """The parameters in a validated entry of a scenario, as an instance of the algorithm's own model.

    No validator is built for coband's own models, whose fields the entry has validated already.

    Args:
        entry: an instance of a model that is derived from the algorithm's, and has more fields.
        model: the algorithm's.
        data: what the scenario says of the fields of ``model``; another package's model reads it itself.
    """
    if not model.__module__.startswith("coband."):
        return model.model_validate_json(json.dumps(data))
    values = {name: getattr(entry, name) for name in model.model_fields}
    return model.model_construct(entry.model_fields_set & values.keys(), **values)
