"""One's own arrays as a bandit: arms and rewards that Python has computed, or a function of the arms.

Few numbers are part of the scenario's text. More are named by the digest of their content there, travel with the
problem to worker processes, and lie in a file beside the scenario of each run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pydantic
from pydantic import Field

from coband.simulator.arrays import FloatArray
from coband.simulator.core.world import World
from coband.simulator.plugins.functions import importable_name
from coband.simulator.plugins.promises import real
from coband.simulator.problems.array_files import Arrays, arms_of, file_of, read_arrays
from coband.simulator.problems.contextual import ContextualProblem
from coband.simulator.problems.disjoint import Scale, scale_warnings, scaled
from coband.simulator.problems.problem import InstanceError, Problem, ProblemEntry, Streams, refused
from coband.simulator.problems.rewards import NoiseSpec, as_noise
from coband.simulator.problems.rows import RowsOf, TableWorld, described, drawn_rows, own_turns, shuffled_turns
from coband.simulator.problems.world import FixedArmsWorld, OwnArmsWorld, longest_block
from coband.simulator.scenario_errors import RAISED

MOST_INLINE = 500
"""Numbers that a scenario's text holds at most; more are in a file beside it."""
_KNOWN: dict[str, Arrays] = {}
"""Arrays that this process has been given, by digest: a scenario's text only has the digest of larger ones."""

Regret = Literal["expected", "realised"]


class ArraysProblem(Problem):
    """Arms and mean rewards as arrays."""

    kind: Literal["arrays"]
    """One's own arrays; from Python: `coband.Problem.from_arrays`."""
    arms: tuple[Any, ...] | None = None
    """Rows of d features: the M arms of every turn (M, d), T turns of K arms (T, K, d) that every agent goes through in
    a random order of its own, or T turns for each of N agents (N, T, K, d), in their order and again from the start."""
    rewards: tuple[Any, ...] | None = None
    """Mean rewards: (M,), or (N, M) where each of N agents has a task of its own; (T, K); (N, T, K)."""
    content: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """In the place of arms and rewards: the SHA-256 of arrays that are in a file beside the scenario."""
    count: int | None = Field(default=None, ge=2)
    """With arms (M, d): arms offered at each turn, drawn without replacement; null: all."""
    scale: Scale = "none"
    """Each arm to l2 norm 1, then features to mean 0 and deviation 1 over all arms; or one of the two, or none."""
    noise: NoiseSpec = Field(default=0.0)
    """Noise added to the mean reward; a number is the standard deviation of Gaussian noise."""
    regret: Regret = "expected"
    """expected: the best reward of the turn's arms minus the arm's; realised: minus the noisy reward."""

    _arrays: Arrays | None = pydantic.PrivateAttr(default=None)

    @pydantic.model_validator(mode="after")
    def _check(self) -> ArraysProblem:
        inline = self.arms is not None, self.rewards is not None
        if self.content is not None and any(inline):
            raise ValueError("content takes the place of arms and rewards; give the one or the others.")
        if self.content is None and not all(inline):
            raise ValueError("arms and rewards are both needed.")
        self._arrays = Arrays.of(self.arms, self.rewards) if self.content is None else _KNOWN.get(self.content)
        if self._arrays is not None and (wrong := self._wrong_count(self._arrays)):
            raise ValueError(wrong)
        return self

    @classmethod
    def of(cls, arms: Any, rewards: Any, **options: Any) -> ArraysProblem:
        """What `coband.Problem.from_arrays` makes.

        Raises:
            ScenarioError: the arrays or options cannot be used.
        """
        try:
            return cls._of(Arrays.of(arms, rewards), options)
        except ValueError as error:  # pydantic's are among them
            raise refused("Problem.from_arrays", error) from error

    @classmethod
    def of_function(cls, function: Callable[..., Any], arms: Any, *, agents: int | None, **options: Any) -> Problem:
        """What `coband.Problem.from_function` makes.

        Raises:
            ScenarioError: the function, the arms or the options cannot be used.
        """
        try:
            if isinstance(arms, Mapping):
                return contextual_of(function, arms, agents=agents, **options)
            return cls._of(rewards_of(function, arms, agents), options)
        except ValueError as error:
            raise refused("Problem.from_function", error) from error

    @classmethod
    def _of(cls, arrays: Arrays, options: Mapping[str, Any]) -> ArraysProblem:
        if arrays.arms.size + arrays.rewards.size <= MOST_INLINE:
            given: dict[str, object] = {"arms": arrays.arms.tolist(), "rewards": arrays.rewards.tolist()}
        else:
            _KNOWN[arrays.content] = arrays
            given = {"content": arrays.content}
        return cls(kind="arrays", **given, **{key: value for key, value in options.items() if value is not None})

    def validate_for(self, agents: int) -> Iterator[tuple[tuple[str, ...], str]]:
        if self._arrays is not None and (wrong := _wrong_agents(self._arrays, agents)):
            yield (("rewards",) if self.content is None else ("content",)), wrong

    def attachment(self, base: Path | None) -> tuple[str, Callable[[], bytes]] | None:
        """The file with the arrays, where they are not part of the text.

        Raises:
            DataError: they are neither in this process nor beside the scenario.
        """
        return None if self.content is None else (file_of(self.content), self._found(base).packed)

    def build(self, streams: Streams, agents: int, base: Path | None = None) -> World:
        """The arrays as a world. An agent's arms or order of turns are drawn from the stream (world, agent, rows).

        Raises:
            DataError: the file with the arrays is missing or holds others.
            InstanceError: they do not fit the scenario.
        """
        arrays = self._found(base)
        if wrong := self._wrong_count(arrays) or _wrong_agents(arrays, agents):
            raise InstanceError(wrong)
        noise, realised = as_noise(self.noise), self.regret == "realised"
        if arrays.arms.ndim == 2 and self.count is None:
            arms, means = scaled(arrays.arms, self.scale), arrays.rewards
            cautions = scale_warnings(arms, means)
            return FixedArmsWorld(arms, means, noise, streams, described(means), realised, cautions)
        if arrays.arms.ndim == 4 and arrays.arms.shape[1] == 1:
            own, means = scaled(arrays.arms[:, 0].reshape(-1, arrays.arms.shape[-1]), self.scale), arrays.rewards[:, 0]
            cautions = scale_warnings(own, means)
            return OwnArmsWorld(
                own.reshape(arrays.arms[:, 0].shape), means, noise, streams, described(means), realised, cautions
            )
        offered, rows_of = self._turns(arrays)
        d = arrays.arms.shape[-1]
        features = scaled(arrays.arms.reshape(-1, d), self.scale)
        rewards = arrays.rewards if arrays.arms.ndim == 2 else arrays.rewards.reshape(-1)
        return TableWorld(features, rewards, rows_of, noise, streams, longest_block(agents, offered * d), realised)

    def _turns(self, arrays: Arrays) -> tuple[int, RowsOf]:
        """How many arms a turn offers, and which rows of all these are."""
        shape = arrays.arms.shape[:-1]
        if len(shape) == 1:
            assert self.count is not None
            return self.count, partial(drawn_rows, shape[0], self.count)
        rows = np.arange(arrays.rewards.size, dtype=np.intp).reshape(shape)
        if len(shape) == 2:
            return shape[-1], partial(shuffled_turns, list(rows))
        return shape[-1], partial(own_turns, [list(own) for own in rows])

    def _found(self, base: Path | None) -> Arrays:
        if self._arrays is not None:
            return self._arrays
        assert self.content is not None
        return read_arrays(Path() if base is None else base, self.content)

    def _wrong_count(self, arrays: Arrays) -> str:
        if self.count is None:
            return ""
        if arrays.arms.ndim != 2:
            return f"count goes with arms of shape (M, d); a turn of arms of shape {arrays.arms.shape} offers all."
        arms = len(arrays.arms)
        return "" if self.count <= arms else f"count(={self.count}) must be <= the {arms} arms."


def _wrong_agents(arrays: Arrays, agents: int) -> str:
    if arrays.agents in (None, agents):
        return ""
    shape = arrays.rewards.shape
    return f"rewards of shape {shape} are those of {arrays.agents} agents, but agents.count is {agents}."


def rewards_of(function: Callable[..., Any], arms: Any, agents: int | None) -> Arrays:
    """Arms with the values of a function, which is called here and now and never again.

    Args:
        function: of the arms of a turn (n, d), and of the agent's number where there are tasks; gives (n,).
        arms: (M, d), or (T, K, d) for logged turns.
        agents: how many tasks there are; None for one.

    Raises:
        ValueError: the arms or the values cannot be used; the text says what is wrong.
    """
    if not callable(function):
        raise ValueError(f"f must be a function of an array of arms, not this {type(function).__name__}.")
    features = arms_of(arms)
    if agents is not None and not (isinstance(agents, int | np.integer) and agents >= 1 and features.ndim == 2):
        raise ValueError(f"agents(={agents!r}) must be a whole number >= 1, and goes with arms of shape (M, d).")
    if features.ndim == 4:
        raise ValueError("arms must be (M, d) or (T, K, d); from_arrays takes turns of each agent, with their rewards.")
    if agents is not None:
        return Arrays.of(features, [_values(function, features, agent) for agent in range(agents)])
    if features.ndim == 2:
        return Arrays.of(features, _values(function, features))
    return Arrays.of(features, [_values(function, turn) for turn in features])


def _values(function: Callable[..., Any], arms: FloatArray, *agent: int) -> FloatArray:
    """f of the arms of a turn, (n,).

    Raises:
        ValueError: it fails, gives another shape, or other values at a second call.
    """
    values = _called(function, arms, *agent)
    by_row = values.shape == (len(arms),)
    if by_row and arms.shape[0] == arms.shape[1]:  # it may be that each column has a value
        by_row = _called(function, arms[:1], *agent).shape == (1,)
    if not by_row:
        raise ValueError(
            f"f gave shape {values.shape} for arms of shape {arms.shape}, but must give {(len(arms),)}, a mean reward "
            "for each row; of a function g of a single arm make lambda arms: [g(arm) for arm in arms]."
        )
    if not np.array_equal(values, _called(function, arms, *agent), equal_nan=True):
        raise ValueError("f gave other values when it was called again: it must give mean rewards; noise= adds noise.")
    return values


def _called(function: Callable[..., Any], arms: FloatArray, *agent: int) -> FloatArray:
    try:
        return real(function(arms.copy(), *agent))
    except RAISED as error:  # whatever the user's function raises
        given = f"an array of shape {arms.shape}, an arm per row{f', and agent {agent[0]}' if agent else ''}"
        raise ValueError(f"f raised {type(error).__name__} for {given}: {error}") from error


def contextual_of(
    function: Callable[..., Any],
    arms: Mapping[str, Any],
    *,
    agents: int | None,
    count: int | None,
    scale: str | None,
    **options: Any,
) -> ContextualProblem:
    """Fresh arms at every turn, with a function that worker processes import.

    Raises:
        ValueError: they cannot.
    """
    if any(one is not None for one in (agents, count, scale)):
        raise ValueError("agents, count and scale go with an array of arms; a section of arms says its own.")
    reward = {"kind": "python", "function": importable_name(function)}
    return ContextualProblem.model_validate({"kind": "contextual", "arms": dict(arms), "reward": reward, **options})


PROBLEM = ProblemEntry(
    name="arrays",
    config=ArraysProblem,
    summary="one's own arrays or function of arms, given in Python",
    reference="any arms and rewards, one task or one for each agent",
)
