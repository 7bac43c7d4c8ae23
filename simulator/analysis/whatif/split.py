"""The split of regret by cause: what-if runs that take one cause away after the other.

The causes are taken away in a fixed order, each from the run without the earlier ones: losses, delays, slow and absent
agents, the threshold. The difference that a step makes is due to its cause, *given that order*: a cause that
only matters while another one lasts is counted where it comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from coband.simulator.analysis.whatif.answer import estimate_json
from coband.simulator.analysis.whatif.original import Original, originals
from coband.simulator.analysis.whatif.question import QuestionError
from coband.simulator.analysis.whatif.study import WhatIfStudy, assembled
from coband.simulator.core.fleet.table import BATTERY, SETTABLE
from coband.simulator.core.hosts.availability import Always
from coband.simulator.core.hosts.speed import AgentsConfig
from coband.simulator.core.network.links import LinkRule
from coband.simulator.core.network.network import Capacity, NetworkConfig
from coband.simulator.core.randomness.distributions import ZERO
from coband.simulator.experiments.runs.counterfactual import Counterfactual
from coband.simulator.experiments.runs.variant import FRESH, Parameter, Variant
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.statistics.estimates import Estimate, estimate, paired_difference
from coband.simulator.experiments.store.store import StoredRun

LINKS = frozenset(("uplink", "downlink", "latency"))
"""What devices say of links."""
WithoutCause = Callable[[Scenario, str], Scenario]


@dataclass(frozen=True)
class Step:
    """One cause.

    Attributes:
        name: of the run without it, in labels.
        cause: a cause of regret.
        without: the scenario without it; given the label of the algorithm as well.
    """

    name: str
    cause: str
    without: WithoutCause


def _without_loss(scenario: Scenario, entry: str) -> Scenario:
    """No link loses a copy, and no partition."""
    rules = [rule.model_copy(update={"loss": None}) for rule in scenario.network.links]
    return _networked(scenario, rules, loss=0.0, partitions=())


def _without_delay(scenario: Scenario, entry: str) -> Scenario:
    """Messages take no time on the way, and none to be handled."""
    rules = [rule.model_copy(update={"latency": None, "bandwidth": None}) for rule in scenario.network.links]
    changed = _networked(scenario, rules, latency=ZERO, bandwidth=None, server=Capacity())
    agents = _without_devices(scenario.agents.model_copy(update={"handling": ZERO}), LINKS)
    return replace(changed, agents=agents, server=scenario.server.model_copy(update={"handling": ZERO}))


def _networked(scenario: Scenario, rules: Sequence[LinkRule], **changes: Any) -> Scenario:
    """With another network; rules that say nothing any more are left out."""
    saying = tuple(rule for rule in rules if rule != LinkRule(agents=rule.agents, direction=rule.direction))
    fields = {name: getattr(scenario.network, name) for name in NetworkConfig.model_fields}
    return replace(scenario, network=NetworkConfig.model_validate({**fields, **changes, "links": saying}))


def _with_equal_agents(scenario: Scenario, entry: str) -> Scenario:
    """All agents have the same speed, there are no stragglers, and everybody is always up."""
    usual = scenario.agents.model_copy(update={"speed": None, "stragglers": None, "availability": Always()})
    agents = _without_devices(usual, {*SETTABLE} - LINKS - {*BATTERY})
    return replace(_networked(scenario, scenario.network.links, outages=()), agents=agents)


def _without_devices(agents: AgentsConfig, names: AbstractSet[str]) -> AgentsConfig:
    """Agents whose devices do not set some of what they could."""
    population = agents.population
    if population is None:
        return agents
    left = tuple(name for name in SETTABLE if name in population.sets - names)
    return agents.model_copy(update={"population": population.model_copy(update={"only": left}) if left else None})


def _always_communicating(scenario: Scenario, entry: str) -> Scenario:
    """The algorithm communicates whenever it has anything new, as far as it declares how."""
    entries = []
    for one in scenario.algorithms:
        config = one.config
        if one.label == entry and one.algorithm.always:
            fields = {name: getattr(config, name) for name in type(config).model_fields}
            try:
                config = type(config).model_validate({**fields, **one.algorithm.always})
            except ValidationError:  # not with these parameters, such as widths that have the threshold in them
                config = one.config
        entries.append(replace(one, config=config))
    return replace(scenario, algorithms=tuple(entries))


STEPS = (
    Step("no loss", "lost messages", _without_loss),
    Step("no delay", "late messages", _without_delay),
    Step("equal agents", "slow and absent agents", _with_equal_agents),
    Step("always", "the threshold", _always_communicating),
)
"""In the order in which causes are taken away."""


@dataclass(frozen=True)
class Share:
    """The regret that is due to one cause.

    Attributes:
        regret: mean regret of the runs without it and the earlier ones.
        owed: the regret before minus that, paired by replication; None where the scenario has no such cause.
    """

    cause: str
    regret: float
    owed: Estimate | None


@dataclass(frozen=True)
class Split:
    """The regret of one label, by cause.

    Attributes:
        shares: in the order of :data:`STEPS`.
        rest: the regret without all of these causes.
    """

    label: str
    replications: tuple[int, ...]
    regret: Estimate
    shares: tuple[Share, ...]
    rest: Estimate

    def percentage(self, part: float) -> str:
        return f"{100.0 * part / self.regret.mean:.0f} %" if self.regret.mean else ""

    def as_json(self) -> dict[str, object]:
        shares = [
            {"cause": share.cause, "regret": share.regret, "owed": estimate_json(share.owed)} for share in self.shares
        ]
        regret, rest = estimate_json(self.regret), estimate_json(self.rest)
        numbers = list(self.replications)
        return {"label": self.label, "replications": numbers, "regret": regret, "shares": shares, "rest": rest}


def split_study(run: StoredRun, label: str | None = None, replication: int | None = None) -> WhatIfStudy:
    """The runs that split the regret of stored jobs.

    Args:
        label, replication: of the jobs; None for all.

    Raises:
        StoreError: there is no such job, or none has finished.
        QuestionError: the label has none of the causes.
    """
    found = originals(run, label, replication)
    variants = [(one, variant) for one in found for variant in _variants(one)]
    if not variants:
        raise QuestionError(
            f"{run.path}: nothing is lost or late here, agents are equal, and no threshold is above the value at which "
            "an algorithm always communicates; there is nothing to split."
        )
    return assembled(run, variants, {"split": [step.name for step in STEPS]})


def _variants(original: Original) -> Iterator[Variant]:
    """The runs of a label: one for each cause that its scenario has."""
    before = scenario = original.scenario()
    change = Counterfactual(before, original.fingerprints)
    for step in STEPS:
        changed = step.without(scenario, original.entry)
        if changed != scenario:
            parameter = Parameter(f"split={step.name}", "split", step.name, None)
            yield Variant(0, original.entry, changed, (*original.parameters, parameter), whatif=change)
        scenario = changed


def splits(stored: StoredRun, changed: StoredRun, study: WhatIfStudy) -> Iterator[Split]:
    """The regret of every label, by cause, from the runs of a study of :func:`split_study`."""
    for label in dict.fromkeys(study.of.values()):
        before = _regrets(stored, label)
        steps = {
            variant.parameters[-1].text: _regrets(changed, variant.title(FRESH))
            for variant in study.variants
            if study.of[variant.title(FRESH)] == label
        }
        common = tuple(sorted(set(before).intersection(*map(set, steps.values()))))
        if common:
            yield _split(label, common, before, steps)


def _split(label: str, common: tuple[int, ...], before: dict[int, float], steps: dict[str, dict[int, float]]) -> Split:
    current = first = [before[number] for number in common]
    shares = []
    for step in STEPS:
        regrets = steps.get(step.name)
        if regrets is None:
            shares.append(Share(step.cause, estimate(current).mean, None))
            continue
        values = [regrets[number] for number in common]
        shares.append(Share(step.cause, estimate(values).mean, paired_difference(current, values)))
        current = values
    return Split(label, common, estimate(first), tuple(shares), estimate(current))


def _regrets(run: StoredRun, label: str) -> dict[int, float]:
    return {job.replication: float(job.record["regret"]) for job in run.select(label) if job.record is not None}
