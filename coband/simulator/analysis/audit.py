"""Audits of privacy: an attack on what the adversary saw, and what it proves about epsilon.

Two neighbouring worlds differ in one pull (a canary at the limits of the clips), or, of ``unit: agent``, in all pulls
of an agent. The messages of one run, with and without the canary, go through the wire many times with fresh noise. An
attack learns on half of them which world it saw, and is tested on the other half. Confidence limits of its rates of
true and false positives (Clopper and Pearson 1934) bound epsilon from below (Jagielski, Ullman and Oprea 2020).
Gaussian noise promises more, the whole trade-off between both rates, mu-GDP (Dong, Roth and Su 2022), which few runs
can refute (Nasr et al. 2023): mu >= Phi^-1(TPR) - Phi^-1(FPR).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import SERVER
from coband.simulator.core.nodes.outbox import Address, Recipient
from coband.simulator.core.plan import Plan
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.wire import accounting
from coband.simulator.core.wire.encodings import of_the_form, reals, replaced
from coband.simulator.core.wire.noising import Noising
from coband.simulator.core.wire.privacy import Privacy
from coband.simulator.core.wire.wire import Wire
from coband.simulator.core.wire.worlds import PrivateWorld
from coband.simulator.experiments.runs.code_version import one_thread
from coband.simulator.experiments.runs.job import engine_of, plan
from coband.simulator.experiments.scenario.scenario import Scenario, ScenarioEntry
from coband.simulator.scenario_errors import RequestError

MOST_MESSAGES = 8
"""The first messages of a sender."""
Corners = dict[str, tuple[float, float]]
FAR = 100.0
"""A sum of squares has so many times its noise on its diagonal, as of many other pulls, so that nothing is repaired."""


@dataclass(frozen=True)
class Verdict:
    """What an attack has found.

    Attributes:
        label: of the algorithm.
        messages: that it saw in each world.
        trials: of each world on which it was tested.
        true_positives, false_positives: how often it said "with the canary", rightly and wrongly.
        confidence: with which the bounds hold.
        accounted: the epsilon of what was sent, by the accountant.
        least: epsilon is at least that, whatever the mechanism.
        least_gaussian: the same if it is one of Gaussian noise; None if it is not.
    """

    label: str
    messages: int
    trials: int
    true_positives: int
    false_positives: int
    confidence: float
    accounted: float
    least: float
    least_gaussian: float | None

    @property
    def refuted(self) -> bool:
        """Whether the accountant promises more than there is."""
        return max(self.least, self.least_gaussian or 0.0) > self.accounted


def limits(hits: int, trials: int, confidence: float) -> tuple[float, float]:
    """Clopper and Pearson's limits of a probability: each of them holds with that confidence."""
    from scipy.stats import beta

    low = float(beta.ppf(1.0 - confidence, hits, trials - hits + 1)) if hits else 0.0
    high = float(beta.ppf(confidence, hits + 1, trials - hits)) if hits < trials else 1.0
    return low, high


def least_epsilon(positives: tuple[int, int], trials: int, delta: float, confidence: float) -> float:
    """What (true, false) positives prove: TPR <= e^epsilon FPR + delta, and the same of negatives."""
    each = 1.0 - (1.0 - confidence) / 2.0
    (true_low, _), (_, false_high) = (limits(hits, trials, each) for hits in positives)
    rates = ((true_low - delta, false_high), (1.0 - false_high - delta, 1.0 - true_low))
    return max(0.0, *(math.log(more / less) for more, less in rates if more > 0.0 and less > 0.0))


def least_mu(positives: tuple[int, int], trials: int, confidence: float) -> float:
    """The mu of mu-GDP that they prove."""
    from scipy.special import ndtri

    each = 1.0 - (1.0 - confidence) / 2.0
    (true_low, _), (_, false_high) = (limits(hits, trials, each) for hits in positives)
    return max(0.0, float(ndtri(true_low) - ndtri(false_high))) if true_low > 0.0 and false_high < 1.0 else 0.0


def audited(scenario: Scenario, entry: ScenarioEntry, trials: int, confidence: float) -> Verdict:
    """The audit of one algorithm of a scenario: of the noise on the wire, or else of that of its own nodes.

    Args:
        scenario: with a section ``messages.privacy``, or without for an algorithm that is private by itself.
        entry: of the algorithm.
        trials: how often each world is seen in the test, and as often before it to learn.
        confidence: with which the bounds shall hold.

    Raises:
        RequestError: there is nothing to audit.
        UnsupportedScenario: the scenario cannot run.
    """
    private = entry.algorithm.private
    if scenario.messages.privacy is not None or private is None:
        return Audit(scenario, entry, trials).verdict(confidence)
    noise = private(engine_of(scenario, entry, "off").agents[0].context)

    def see(trial: int, canary: int) -> list[float]:
        rng = Streams(scenario.seed, 2 * trial + canary)("wire", 0, "audit")
        return noise.see(rng, MOST_MESSAGES, bool(canary))

    worlds = [np.array([see(trial, canary) for trial in range(2 * trials)]) for canary in (0, 1)]
    spent = noise.spent(MOST_MESSAGES)
    accounted = accounting.own_epsilon(spent, noise.delta)
    seen = Seen(entry.label, MOST_MESSAGES, accounted, noise.delta, spent.rate == 1.0)
    return _judged(seen, worlds, confidence)


class Seen(NamedTuple):
    """What an attack is told: whose messages it saw, how many, and what was promised of them."""

    label: str
    messages: int
    accounted: float
    delta: float
    gaussian: bool


def _judged(seen: Seen, worlds: Sequence[FloatArray], confidence: float) -> Verdict:
    """Attack what was seen in either world, (2 trials, numbers), and say what that proves."""
    trials, delta = len(worlds[0]) // 2, seen.delta
    gaussian = None
    if seen.gaussian:
        hits = _attack(worlds[0], worlds[1], lambda found: least_mu(found, trials, confidence))
        mu = least_mu(hits, trials, confidence)
        gaussian = accounting.gaussian_epsilon(1.0, mu**2, delta) if mu else 0.0
    else:
        hits = _attack(worlds[0], worlds[1], lambda found: least_epsilon(found, trials, delta, confidence))
    least = least_epsilon(hits, trials, delta, confidence)
    return Verdict(seen.label, seen.messages, trials, *hits, confidence, seen.accounted, least, gaussian)


class Audit:
    """The audit of the noise on the wire of one algorithm; see `audited`."""

    def __init__(self, scenario: Scenario, entry: ScenarioEntry, trials: int) -> None:
        privacy = scenario.messages.privacy
        if privacy is None:
            raise RequestError(
                f"the scenario has no section messages.privacy, and {entry.algorithm.name} puts no noise on what it "
                "sends, so there is no promise to audit"
            )
        self._scenario, self._entry, self._trials = scenario, entry, trials
        self._privacy: Privacy = privacy
        self._plan: Plan = plan(scenario, entry.ties, "off")

    def verdict(self, confidence: float) -> Verdict:
        with one_thread():
            see = self._pull if self._privacy.mechanism.local else self._messages
            messages = 1 if self._privacy.mechanism.local else len(self._sent)
            worlds = [np.array([see(trial, canary) for trial in range(2 * self._trials)]) for canary in (0, 1)]
        noising, node = self._last
        accounted = noising.epsilon(noising.weight(node))
        seen = Seen(self._entry.label, messages, accounted, self._privacy.delta, not self._privacy.mechanism.local)
        return _judged(seen, worlds, confidence)

    def _noising(self, trial: int, canary: int) -> Noising:
        """Fresh noise for a trial of a world."""
        streams = Streams(self._scenario.seed, 2 * trial + canary)
        count, schedule = self._plan.agents.count, self._plan.schedule
        total, least = schedule.total_turns(count), schedule.turns_per_agent(count, streams)
        most = None if total is None else total - (count - 1) * (least or 0)
        graph = self._plan.network.graph is not None
        return Noising(self._privacy, self._entry.algorithm, streams, count, (most, total), graph, lambda: 0.0)

    # --- sums in messages

    @cached_property
    def _sent(self) -> list[tuple[Address, Recipient, Message]]:
        """The noised messages of one sender in a run of the scenario, as its node sends them."""
        found = list[tuple[Address, Recipient, Message]]()
        engine = engine_of(self._scenario, self._entry, "off")
        wire = engine.wire
        assert wire is not None
        leave = wire.leave

        def noted(source: Address, recipient: Recipient, message: Message) -> Any:
            found.append((source, recipient, message))
            return leave(source, recipient, message)

        wire.leave = noted  # type: ignore[method-assign]
        engine.run()
        noised = [one for one in found if one[0] in self._senders and self._privacy.noised(type(one[2]))]
        if not noised:
            raise RequestError(
                f"{self._entry.label}: nothing is sent that the adversary sees; there is nothing to audit"
            )
        first = noised[0][0]
        return [one for one in noised if one[0] == first][:MOST_MESSAGES]

    @property
    def _senders(self) -> Sequence[Address]:
        graph = self._plan.network.graph is not None
        others = self._privacy.adversary == "others" and not graph
        return (SERVER,) if others else range(self._plan.agents.count)

    def _messages(self, trial: int, canary: int) -> list[float]:
        """Where the canary would be in what the adversary sees, in units of one pull."""
        noising, messages, shape = self._noising(trial, canary), self._plan.messages, self._plan
        streams = Streams(self._scenario.seed, 2 * trial + canary)
        wire = Wire(messages, {}, shape.network.scalar_bits, streams, shape.agents.count, noising=noising)
        seen = list[float]()
        for (source, recipient, _), (plain, corners) in zip(self._sent, self._worlds[canary], strict=True):
            if source >= 0:
                for _ in range(plain.pulls):
                    noising.pulled(source, clipped=False)
            for _, sent in wire.leave(source, recipient, replaced(plain, {})):
                seen += [_corner(getattr(sent, name)) / bound - before for name, (before, bound) in corners.items()]
        self._last = noising, self._sent[0][0]
        return seen

    @cached_property
    def _worlds(self) -> tuple[list[tuple[Message, Corners]], ...]:
        """The messages of either world; of each noised field where the canary would be, in the world without, and the
        bound."""
        noising = self._noising(0, 0)
        worlds = []
        for canary in (0, 1):
            made = []
            for number, (_, _, message) in enumerate(self._sent):
                bounds = {name: noising.bound(type(message), name) for name in self._privacy.noised(type(message))}
                without = self._with(message, number, 0, noising.sigma, bounds)
                corners = {name: (_corner(getattr(without, name)) / bound, bound) for name, bound in bounds.items()}
                made.append((self._with(message, number, canary, noising.sigma, bounds), corners))
            worlds.append(made)
        return tuple(worlds)

    def _with(self, message: Message, number: int, canary: int, sigma: float, bounds: dict[str, float]) -> Message:
        """A message with the canary in its sums, or without: a pull along the first axis."""
        values = {}
        for name, bound in bounds.items():
            entries, declared = np.array(reals(message)[name]), message.declared(name)
            if declared["symmetric"] and entries.ndim == 2:
                entries.flat[:: len(entries) + 1] += FAR * sigma * bound * math.sqrt(len(entries))
            if canary and (number == 0 or declared["pulls"] != "new"):
                entries[(0,) * entries.ndim] += bound
            if canary and self._privacy.unit == "agent":
                if declared["pulls"] != "new":
                    raise RequestError("with unit: agent, only messages that bring new pulls can be audited")
                entries[(0,) * entries.ndim] += bound * (message.pulls - (number == 0))
            values[name] = of_the_form(getattr(message, name), entries)
        return replaced(message, values)

    # --- pulls

    def _pull(self, trial: int, canary: int) -> list[float]:
        """For each noised number of one pull, how much nearer it is to the canary than to nothing."""
        noising, clip = self._noising(trial, canary), self._privacy.clip
        point = np.zeros(2) if clip.points is None else np.full(2, clip.points / math.sqrt(2.0))
        reward = clip.rewards or 0.0
        world = PrivateWorld(_OnePull(canary * point, canary * reward), self._privacy, noising)
        told, _ = world.pull(0, 1, 0)
        pairs = [(told, reward)] if clip.rewards else []
        if clip.points is not None:
            shown = world.veiled(0, 1, ArmSet(world.arms(0, 1)), 0).features[0]
            pairs += list(zip(shown.tolist(), point.tolist(), strict=True))
        self._last = noising, 0
        return [(abs(value) - abs(value - whole)) / whole for value, whole in pairs]


def _corner(value: Any) -> float:
    """The first entry of a field."""
    entries = np.asarray(value)
    return float(entries[(0,) * entries.ndim])


class _OnePull:
    """A world of one arm, which pays a reward without noise."""

    fixed_arms, dimension = False, 2

    def __init__(self, point: FloatArray, reward: float) -> None:
        self._point, self._reward = point, reward

    def arms(self, agent: int, turn: int) -> FloatArray:
        return self._point[None]

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        return self._reward, 0.0

    means: Callable[[int, int], FloatArray]
    describe: Callable[[], dict[str, Any]]


def _attack(without: FloatArray, canary: FloatArray, proves: Callable[[tuple[int, int]], float]) -> tuple[int, int]:
    """(true, false) positives of a linear attack that has learnt on the first half of the trials, (trials, numbers).

    Its weights are Fisher's; its threshold is the one with which the first half proves the most.
    """
    half = len(without) // 2
    means = canary[:half].mean(axis=0) - without[:half].mean(axis=0)
    spread = np.cov(np.vstack([canary[:half] - means, without[:half]]).T).reshape(len(means), len(means))
    weights = np.linalg.lstsq(spread, means, rcond=None)[0]
    scores = [found @ weights for found in (canary, without)]

    def positives(part: slice, threshold: float) -> tuple[int, int]:
        true, false = (int(np.sum(found[part] > threshold)) for found in scores)
        return true, false

    learnt = np.concatenate([found[:half] for found in scores])
    thresholds = np.quantile(learnt, np.linspace(0.01, 0.99, 50)).tolist()
    best = max(thresholds, key=lambda threshold: proves(positives(slice(half), threshold)))
    return positives(slice(half, None), best)
