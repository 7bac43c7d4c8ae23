"""One's own data as a bandit: arms and rewards in a table, one arm per row.

Without `group` the rows are the arms: every turn offers all of them, or `count` of them. With `group`, rows with the
same value in that column are the arms of one turn, such as the articles that were shown at one visit; agents go
through the groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pydantic
from pydantic import Field

from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.core.world import World
from coband.simulator.problems.disjoint import Scale, scale_warnings, scaled
from coband.simulator.problems.problem import DataError, Problem, ProblemEntry, Streams
from coband.simulator.problems.rewards import NoiseSpec, as_noise
from coband.simulator.problems.rows import RowsOf, TableWorld, described, drawn_rows, own_turns, shuffled_turns
from coband.simulator.problems.tables import Form, Missing, read_table
from coband.simulator.problems.world import FixedArmsWorld, longest_block, read_only


class TableProblem(Problem):
    """Arms and rewards from a CSV or Parquet file, one arm per row."""

    kind: Literal["table"]
    """One's own data: a table with an arm per row."""
    path: Path
    """CSV file with the names of its columns in the first line, perhaps compressed, or Parquet file; relative to the
    scenario."""
    features: Annotated[tuple[str, ...], Field(min_length=1)]
    """Columns with the features of an arm, d of them."""
    reward: str
    """Column with the mean reward of an arm."""
    group: str | None = None
    """Column that tells turns apart: rows with the same value in it, a number or text, are the arms of one turn. null:
    the rows are the arms of all turns."""
    agent: str | None = None
    """With group: column with the number of the agent, from 0, whose turn it is; number names of devices by
    pandas.factorize. Its turns come in the order of the
    file, and begin again after the last. null: every agent goes through all turns in a random order of its own, and
    draws a new order after each pass."""
    count: int | None = Field(default=None, ge=1)
    """Without group: arms offered at each turn, drawn without replacement; null: all."""
    one_hot: tuple[str, ...] = ()
    """Features that hold texts, or numbers that stand for names: each becomes columns of 0 and 1, one for each value
    that occurs, in alphabetical order."""
    missing: Missing = "refuse"
    """What becomes of rows that lack a number (empty, NA, N/A, NaN, null) or a text (empty): refuse the table, drop
    them, or fill in the mean of the feature's column; a reward is never filled in."""
    decimal: Literal["point", "comma"] = "point"
    """What stands before the decimals in a CSV file; with a comma, semicolons or tabs separate columns, or numbers are
    quoted."""
    scale: Scale = "none"
    """Rows to l2 norm 1, then columns to mean 0 and deviation 1; or one of the two, or none."""
    noise: NoiseSpec = Field(default=0.0)
    """Noise added to the reward in the table; a number is the standard deviation of Gaussian noise."""
    regret: Literal["expected", "realised"] = "expected"
    """expected: the best reward of the turn's arms minus the arm's; realised: minus the noisy reward."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> TableProblem:
        if self.group is not None and self.count is not None:
            raise ValueError("count goes without group: with group, a turn offers all arms of its group.")
        if self.agent is not None and self.group is None:
            raise ValueError("agent needs group, the column that tells the turns of an agent apart.")
        named = [*self._columns, *([] if self.group is None else [self.group])]
        twice = [name for name in named if named.count(name) > 1]
        if twice:
            raise ValueError(f"the column {twice[0]!r} is named twice.")
        if other := [name for name in self.one_hot if name not in self.features]:
            raise ValueError(f"one_hot names {other[0]!r}, which is none of the features {', '.join(self.features)}.")
        return self

    @property
    def _columns(self) -> list[str]:
        return [*self.features, self.reward, *([] if self.agent is None else [self.agent])]

    def build(self, streams: Streams, agents: int, base: Path | None = None) -> World:
        """Read the table. An agent's arms or order of turns are drawn from the stream (world, agent, rows).

        Raises:
            DataError: the file is missing or malformed, or does not fit the scenario.
        """
        file = (Path() if base is None else base) / self.path.expanduser()
        form = Form(self.missing, self.features, self.one_hot, self.decimal, self.agent)
        table, turns = read_table(file, self._columns, self.group, form)
        d = table.shape[1] - len(self._columns) + len(self.features)
        features, rewards = read_only(scaled(table[:, :d], self.scale)), read_only(table[:, d])
        noise, realised = as_noise(self.noise), self.regret == "realised"
        if self.group is None and self.count is None:
            cautions = scale_warnings(features, rewards)
            return FixedArmsWorld(features, rewards, noise, streams, described(rewards), realised, cautions)
        if self.group is None:
            assert self.count is not None
            if self.count > len(features):
                raise DataError(f"problem.count(={self.count}) must be <= the {len(features)} rows.", file)
            rows_of: RowsOf = partial(drawn_rows, len(features), self.count)
            arms = self.count
        else:
            groups = np.split(np.argsort(turns, kind="stable"), np.cumsum(np.bincount(turns))[:-1])
            rows_of = (
                partial(shuffled_turns, groups)
                if self.agent is None
                else _turns_of_agents(groups, table[:, d + 1], agents, file)
            )
            arms = max(map(len, groups))
        return TableWorld(features, rewards, rows_of, noise, streams, longest_block(agents, arms * d), realised)


def _turns_of_agents(groups: Sequence[IndexArray], owners: FloatArray, agents: int, file: Path) -> RowsOf:
    """An agent's own turns in the order of the file, again and again; ``owners``: the agent of each row."""
    own: list[list[IndexArray]] = [[] for _ in range(agents)]
    for rows in groups:
        numbers = sorted(set(owners[rows].tolist()))
        if len(numbers) > 1 or numbers[0] not in range(agents):
            given = ", ".join(f"{number:g}" for number in numbers)
            raise DataError(
                f"row {rows[0] + 1}: the arms of a turn need one agent, a number from 0 to agents.count - 1 = "
                f"{agents - 1}; they have {given}.",
                file,
            )
        own[int(numbers[0])].append(rows)
    idle = [agent for agent, turns in enumerate(own) if not turns]
    if idle:
        raise DataError(f"the table has no turns of agent {idle[0]}, one of agents.count(={agents}).", file)
    return partial(own_turns, own)


PROBLEM = ProblemEntry(
    name="table",
    config=TableProblem,
    summary="one's own data: a CSV or Parquet file with an arm per row",
    reference="any logged contexts and rewards",
)
