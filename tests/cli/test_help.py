"""All pages of help: what means the same has one name and looks the same in every command."""

import re
from collections.abc import Callable, Iterator

import click
import pytest

from coband.simulator.cli.main import cli
from tests.every import every

ORDER = (
    "--list --set --quick --replications --label --other-label --replication --seed --only --against --alone --trace "
    "--check --workers --cluster --cluster-option --quiet --resume --out --force --json"
)
"""The order of options that several commands have; a command's own stand anywhere among them."""
ARGUMENTS = "FILE RUN RUN|NAME NAME DIR KIND PAPER|CLAIM PAPER|FIGURE A B SEQ SQL tcp://HOST:PORT"
"""The arguments in their order: what is read comes first."""
OTHER_NAMES = {"-o", "--output", "--output-dir", "--dest", "--format-json", "--jobs", "--overwrite", "--algorithm"}
"""Names for what has another name in other commands."""
SEVERAL_METAVARS = {"--out": {"DIR", "FILE", "DIR|FILE"}}
OWN_UNITS = {"--budget": {"HOURS", "JOBS"}}
"""Options that limit how long a command goes on, each in the unit that its metavar names."""
ONE_OR_MORE = {"--format", "--replication"}
"""Options of which some commands take one and others several."""
OF_CLICK = re.compile(r"INTEGER|FLOAT|TEXT|PATH|RANGE|BOOLEAN")
WIDTH = 80


def commands(group: click.Group, context: click.Context) -> Iterator[tuple[str, tuple[click.Context, click.Command]]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None and not command.hidden:
            inner = click.Context(command, info_name=name, parent=context)
            yield inner.command_path, (inner, command)
            yield from commands(command, inner) if isinstance(command, click.Group) else ()


PAGES = dict(commands(cli, click.Context(cli, info_name="coband", **cli.context_settings)))
"""Every command by its full name."""


def options(path: str) -> dict[str, click.Option]:
    return {one.opts[-1]: one for one in PAGES[path][1].params if isinstance(one, click.Option)}


def uses(name: str) -> dict[str, click.Option]:
    return {path: found[name] for path in PAGES if name in (found := options(path))}


NAMES = sorted({name for path in PAGES for name in options(path)})


def metavar(path: str, option: click.Parameter) -> str:
    return option.make_metavar(PAGES[path][0])


@every("path", PAGES)
def test_options_have_one_long_name(path: str) -> None:
    names = [(*one.opts, *one.secondary_opts) for one in options(path).values()]
    assert [found for found in names if len(found) != 1 or not found[0].startswith("--")] == []
    # where there is no scenario whose labels --only could select
    allowed = {"--algorithm"} if path == "coband suite run" else set()
    assert (set(options(path)) - allowed) & OTHER_NAMES == set()


@every("path", PAGES)
def test_shared_options_have_one_order(path: str) -> None:
    shared = [name for name in options(path) if name in ORDER.split()]
    assert shared == sorted(shared, key=ORDER.split().index)


def test_options_of_several_commands_are_ordered_here() -> None:
    own = "--agents --budget --limit --format --file --dir --port --token"
    # these stand in two subcommands of one command, or mean other things
    assert len(PAGES) > 30
    assert {name for name in NAMES if len(uses(name)) > 1} - set(own.split()) <= set(ORDER.split())


@every("path", PAGES)
def test_arguments_have_one_name_and_one_order(path: str) -> None:
    found = [one for one in PAGES[path][1].params if isinstance(one, click.Argument)]
    words = [re.sub(r"[\[\].]", "", metavar(path, one)) for one in found]
    assert set(words) <= set(ARGUMENTS.split())
    assert words == sorted(words, key=ARGUMENTS.split().index)
    assert [metavar(path, one).startswith("[") for one in found] == [not one.required for one in found]
    assert [metavar(path, one).endswith("...") for one in found] == [one.nargs == -1 for one in found]


@every("name", NAMES)
def test_an_option_is_the_same_in_every_command(name: str) -> None:
    found = uses(name)
    looks = {metavar(path, one) for path, one in found.items() if not one.is_flag}
    assert len(looks) <= 1 or looks == {**SEVERAL_METAVARS, **OWN_UNITS}.get(name) or name == "--format"
    assert len({(one.is_flag, type(one.type)) for one in found.values()}) == 1 or name in OWN_UNITS
    assert len({one.multiple for one in found.values()}) == 1 or name in ONE_OR_MORE
    assert len({re.findall(r"\w+", one.help or "")[0] for one in found.values()}) == 1 or name in SEVERAL_METAVARS


@every("path", PAGES)
def test_every_option_is_documented(path: str) -> None:
    for name, option in options(path).items():
        text = option.help or ""
        assert re.fullmatch(r"[A-Z].*[^.]\.", text, re.DOTALL), f"{name}: {text!r}"
        assert option.is_flag or not OF_CLICK.search(metavar(path, option)), name
        assert ("repeatable" in text) == option.multiple, name
        has_default = not option.is_flag and option.to_info_dict()["default"] not in (None, ())
        assert not has_default or "default: " in (option.get_help_record(PAGES[path][0]) or ("", ""))[1], name


@pytest.mark.parametrize("path", PAGES)
def test_pages_have_80_columns_and_cut_nothing(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    context, command = PAGES[path]
    text = command.get_help(context)
    assert [line for line in text.splitlines() if len(line) > WIDTH] == []
    assert not re.search(r"\w\.\.\.$", text.partition("Commands:")[2], re.MULTILINE)
    usage = text.partition("\n\n")[0]
    assert " ".join(usage.split()) == " ".join(["Usage:", path, *command.collect_usage_pieces(context)]), (
        "words are cut"
    )
    assert command.help, "it says what it does"


@pytest.mark.parametrize("path", PAGES)
def test_bad_input_is_status_2_everywhere(path: str, coband: Callable[..., tuple[int, str, str]]) -> None:
    words = path.split()[1:]
    status, output, errors = coband(*words, "--nonsense")
    assert (status, output) == (2, "")
    assert "--nonsense" in errors
    assert errors.endswith(f"(`{path} --help` explains)\n")


OF_RUNS = [
    path
    for path, (_, command) in PAGES.items()
    if any(isinstance(one, click.Argument) and one.name in ("path", "paths", "first") for one in command.params)
]
MORE = {"coband trace why": ["1"], "coband trace query": ["SELECT 1"]}
MORE |= {"coband trace diff": ["nowhere"], "coband trace export": ["--format", "perfetto"]}


@pytest.mark.parametrize("path", OF_RUNS)
def test_a_run_that_is_not_there(path: str, coband: Callable[..., tuple[int, str, str]]) -> None:
    status, output, errors = coband(*path.split()[1:], "nowhere", *MORE.get(path, ()))
    assert (status, output) == (2, "")
    assert errors.startswith("coband: nowhere is not a run: there is no nowhere. Give a run directory")
    assert errors.count("\n") == 1
