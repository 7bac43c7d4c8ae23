"""What shells complete: scenarios, labels, run directories and names, found without running or loading much.

Commands know nothing of it. When a shell asks, `complete_parameters` gives the parameters of the command that is being
typed their completions, by name and metavar.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

import click
from click.shell_completion import CompletionItem, split_arg_string

Found = list[CompletionItem]
Completer = Callable[[click.Context, str], Found]
MANIFEST, RESULTS, RUNS, LATEST = "manifest.json", "results.json", "runs", "latest"
SCENARIO_PARAMETERS = ("file", "files", "scenarios")
RUN_PARAMETERS = ("path", "paths", "first", "second")
LABEL_PARAMETERS = ("only", "label", "other_label", "against")


def complete_parameters(command: click.Command) -> None:
    """Give the parameters of a command, and of those below it, what a shell completes."""
    for parameter in command.params:
        completer = _completer(command, parameter)
        if completer is not None:
            setattr(parameter, "shell_complete", completer)  # noqa: B010
    if isinstance(command, click.Group):
        for inner in getattr(command, "commands", {}).values():
            complete_parameters(inner)


def _completer(command: click.Command, parameter: click.Parameter) -> Completer | None:
    if isinstance(parameter, click.Argument) and parameter.name in SCENARIO_PARAMETERS:
        return scenarios
    if isinstance(parameter, click.Argument) and parameter.name in RUN_PARAMETERS:
        return runs
    if parameter.name in LABEL_PARAMETERS:
        return labels
    return {("describe", "name"): names, ("fetch", "name"): datasets}.get((command.name or "", parameter.name or ""))


def scenarios(context: click.Context, incomplete: str) -> Found:
    """Shipped scenarios, scenario files, and folders on the way to them."""
    from coband.simulator.experiments.scenario.shipped import paths

    files = (path for path in _beside(incomplete) if path.suffix in (".yaml", ".yml") and path.is_file())
    found = [*_starting(map(str, files), incomplete), *_starting(paths(), incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


def runs(context: click.Context, incomplete: str) -> Found:
    """Run directories, here and in ``runs``, and the word for the newest one where there are any."""
    places = [*_beside(incomplete), *_beside(f"{RUNS}/"), *_beside(f"{incomplete}/")]
    found = [str(path) for path in dict.fromkeys(places) if (path / MANIFEST).is_file()]
    return _starting([*found, *([LATEST] if found else [])], incomplete) or [CompletionItem(incomplete, type="dir")]


def labels(context: click.Context, incomplete: str) -> Found:
    """Labels and algorithms of the scenario, or of the runs, that the command line has; else all algorithms."""
    # click does not read arguments before an option without its value
    typed = map(Path, split_arg_string(os.environ.get("COMP_WORDS", "")))
    found = [word for path in typed for word in (*_of_scenario(path), *_of_run(path))]
    return _starting(dict.fromkeys(found or _installed("algorithms")), incomplete)


def names(context: click.Context, incomplete: str) -> Found:
    """Names that ``coband describe`` knows; keys and kinds only if no other name fits, since they take longer."""
    from coband.simulator.experiments.scenario.shipped import paths

    groups = map(_installed, ("algorithms", "problems", "kernels", "rewards"))
    return _starting(sorted({*chain(*groups), *paths()}), incomplete) or _starting(sorted(_keys()), incomplete)


def datasets(context: click.Context, incomplete: str) -> Found:
    """Datasets that can be fetched."""
    from coband.simulator.experiments.registry.catalogue import SOURCES

    return _starting(SOURCES, incomplete)


def _starting(words: Iterable[str], incomplete: str) -> Found:
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def _beside(incomplete: str) -> list[Path]:
    """What is in the folder that a path which is being typed leads to."""
    folder = Path(incomplete if incomplete.endswith("/") else Path(incomplete).parent)
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _keys() -> list[str]:
    from coband.simulator.experiments.registry.registry import Registry
    from coband.simulator.reference.entries import index

    return index(Registry.installed()).words()


def _installed(group: str) -> list[str]:
    from coband.simulator.plugins.entry_points import installed

    return sorted(installed(f"coband.{group}").names)


def _of_scenario(path: Path) -> Iterator[str]:
    """Labels and algorithms in a scenario file; none if it is no such file."""
    import yaml

    from coband.simulator.experiments.scenario.shipped import LOADER, SUFFIX, located

    file = located(path)
    if file.suffix != SUFFIX:
        return
    try:
        for entry in yaml.load(file.read_text(encoding="utf-8"), LOADER)["algorithms"]:
            yield from (str(entry[key]) for key in ("label", "algorithm") if key in entry)
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError):
        return


def _of_run(path: Path) -> Iterator[str]:
    """Labels in the results of a run; none if it is no run."""
    try:
        results = json.loads((path / RESULTS).read_text(encoding="utf-8"))["results"]
        yield from (entry["label"] for entry in results)
    except (OSError, ValueError, KeyError, TypeError):
        return
