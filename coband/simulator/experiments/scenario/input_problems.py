"""Error reports about scenarios: what is wrong, and where."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from coband.simulator.scenario_errors import InputProblem as InputProblem
from coband.simulator.scenario_errors import ScenarioError as ScenarioError

LONGEST_SHOWN = 60
KeyPath = tuple[str | int, ...]


def key_path(path: KeyPath) -> str:
    """The path as users write it: ``("algorithms", 0, "alpha")`` is ``algorithms[0].alpha``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{shortened(step)}"
    return text.removeprefix(".")


def shortened(text: str) -> str:
    """The text on one line, with control characters escaped, cut after `LONGEST_SHOWN` characters."""
    line = "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
    return line if len(line) <= LONGEST_SHOWN else line[:LONGEST_SHOWN] + "..."


def quoted(text: str) -> str:
    """The `shortened` text in quotes."""
    return f"'{shortened(text)}'"


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """``"; did you mean latency?"``, or an empty text if no known name is similar."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    near = difflib.get_close_matches(name.casefold(), list(by_folded), n=1, cutoff=0.55)
    return f"; did you mean {by_folded[near[0]]}?" if near else ""


def slips(name: str, known: Sequence[str]) -> list[str]:
    """The known names of which a name may be a slip of the pen: nearly all letters are the same."""
    return difflib.get_close_matches(name, known, cutoff=0.82)
