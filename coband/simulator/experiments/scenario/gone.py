"""What coband had once, and what serves instead: whoever still writes it is told so in one sentence.

A sentence completes "KEY: this key is gone: ..." or "`coband NAME` is gone: ...".
"""

from __future__ import annotations

from collections.abc import Mapping

KEYS: Mapping[str, str] = {
    "agents.restart": "algorithms that forget serve where the world changes, such as discounted_dis_lin_ucb, "
    "discounted_lin_ucb and sw_lin_ucb",
    "algorithms.posterior.memory": "a posterior that is larger than the memory of the machine is refused",
    "tuning.halving": "all candidates run all replications; `coband frontier` searches with fewer jobs",
    "limit": "end a run with Ctrl-C, or with timeout or the queue that runs it; what has finished is kept",
    "agents.population.kind: fit": "draw devices from a table (kind: file); docs/howto/populations.md makes a long "
    "table from a short one",
}
"""Key of a scenario, without positions in lists, or such a key with one of its values -> what serves instead."""

COMMANDS: Mapping[str, str] = {
    "audit": "`coband check FILE --privacy` attacks the privacy that a scenario promises",
    "cite": "`coband describe NAME` prints the BibTeX of an algorithm, a problem or a dataset",
    "counts": "write what you expect in the scenario, as in expect: [{label: A, count: scalars, equals: 400}], and run "
    "`coband check FILE`",
    "export": "read coband.load(RUN).results and .series, and log them with the tracker's own calls",
    "figures": "run a paper's scenario (`coband sweep duets/h1 --out DIR`), and draw it (`coband report DIR`)",
    "fit": "give measured delays as {kind: empirical, file: ...}, or fit a family with scipy.stats, as "
    "docs/howto/faults.md does",
    "live-agent": "it is called `coband live agent`",
    "schema": "`coband validate --schema` prints it",
    "suite page": "`coband suite rank FILE...` prints scores and places, and with --json everything else",
    "trace follow": "`coband trace show RUN --message MESSAGE` prints the history of a message",
    "trace hash": "`coband show RUN --table results` has the fingerprint of each job",
    "ui": "list runs by `coband.runs()` in Python; `coband show`, `compare` and `report` say what is in them",
    "whatif": "run a stored run with one thing changed: `coband run RUN --set KEY=VALUE`",
}
"""Command, such as ``trace follow`` -> what serves instead."""


def key(path: tuple[str | int, ...], value: str = "") -> str | None:
    """Why a scenario has no such key, or no such value of it, any more; None: it never had."""
    entry = ".".join(step for step in path if isinstance(step, str)) + f": {value}" * bool(value)
    return f"{value or 'this key'} is gone: {KEYS[entry]}" if entry in KEYS else None


def command(path: str) -> str | None:
    """Why there is no such command any more; None: there never was."""
    return f"`coband {path}` is gone: {COMMANDS[path]}" if path in COMMANDS else None
