"""The pages about claims: a table of all of them, one page for each paper with its figures, and verdicts in words."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from coband.extending import numerals
from coband.extensions.evidence.claims import reading, results, trials
from coband.extensions.evidence.claims.claim import Claim, OpenSpace, Paper, PlacedClaim
from coband.extensions.evidence.claims.condition import Finding
from coband.extensions.evidence.claims.figures import svgs
from coband.extensions.evidence.claims.outcome import LEVEL, Outcome, Verdict, fails_of, holds_of, verdicts
from coband.extensions.evidence.claims.results import is_of_other_settings
from coband.extensions.evidence.e_values import ENOUGH, PRIOR_GROWTH

USUAL = math.ceil(ENOUGH / PRIOR_GROWTH)
"""Replications that decide an effect of half a standard deviation."""


def in_words(outcome: Outcome, claim: Claim, verdict: Verdict) -> str:
    """A verdict with the settings at which it is one.

    A setting counts by itself if its e-value is at least 20 times the number of settings (Bonferroni).
    """
    parts = outcome.parts()
    if claim.quantifier == "tuned":
        return f"{verdict} tuned" if outcome.chosen else verdict
    if claim.quantifier is None or verdict == "not run" or not parts:
        return verdict
    of = "settings" if claim.at_equal is None else f"levels of {claim.at_equal.metric}"
    enough = math.log(len(parts) / LEVEL)
    holding = [key for key, part in parts.items() if holds_of(part) >= enough]
    failing = [key for key, part in parts.items() if fails_of(part) >= enough]
    if len(failing) == len(parts) or (verdict == "does not hold" and claim.quantifier == "any"):
        return f"does not hold at any of {_count(len(parts))} {of}"
    if len(holding) == len(parts):
        return f"holds at all of {_count(len(parts))} {of}"
    told = {"holds": holding, "does not hold": failing}.get(verdict)
    words: list[str] = [] if told else [verdict]
    words += [f"holds at {_range(holding, list(parts))}"] if holding else []
    words += [f"does not hold at {_range(failing, list(parts))}"] if failing else []
    return "; ".join(words)


def _range(chosen: Sequence[str], known: Sequence[str]) -> str:
    """Some settings; as "D >= 28" if they are the last ones of an ascending parameter."""
    names, values = zip(*(one.partition(" = ")[::2] for one in known), strict=True)
    ascending = (
        len(set(names)) == 1 and all(map(_is_number, values)) and list(map(float, values)) == sorted(map(float, values))
    )
    count = len(chosen)
    if ascending and 1 < count < len(known) and list(chosen) in (list(known[:count]), list(known[-count:])):
        first = list(chosen) == list(known[:count])
        return f"{names[0]} {'<=' if first else '>='} {values[count - 1 if first else -count]}"
    return "; ".join(chosen)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _count(number: int) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    return words[number] if number < len(words) else str(number)


def forecast(outcome: Outcome) -> str:
    """What a verdict still takes, at the cost of the replications so far."""
    done = outcome.replications
    more = USUAL if done < 2 else outcome.missing
    if more is None:
        return "none, since what was measured is too near the border, or some settings have not run twice"
    begins_anew = done > 1 and not all(map(trials.goes_on, outcome.parts().values()))
    more = max(1, more + (done if begins_anew else 0))
    what = f"needs about {more} more replication{'s' if more > 1 else ''}"
    again = f" (the {done} on file run again, since their numbers were not kept)" if begins_anew else ""
    guess = "" if done > 1 else ", if its effect is half a standard deviation"
    hours = more * outcome.cpu_hours / done if outcome.cost_hours is None else outcome.cost_hours
    return f"{what}{again}, {hours:.2g} CPU hours{guess}"


def first(part: Sequence[Finding]) -> str:
    """What there is to say of replications without numbers."""
    return (
        f"*The first {part[0].start} replications:* their numbers were not kept, and their evidence is a factor; "
        f"estimates are of the other {len(part[0].rows)}."
    )


def in_settings(claim: Claim, outcome: Outcome) -> Iterator[str]:
    """The setting of each label, or at each level the weights of its settings."""
    for name, one in outcome.chosen.items():
        if claim.at_equal is None:
            yield f"{name} {trials.in_words(one)}"
        else:
            blends = (
                f"{label} {' + '.join(f'{weight:.0%} {trials.in_words(at)}' for weight, at in parts)}"
                for label, parts in one.items()
            )
            yield f"{name}: {', '.join(blends)}"


MARKS: Mapping[Verdict, str] = {
    "holds": "✓",
    "does not hold": "✗",
    "no practical difference": "≈",
    "undecided": "?",
    "not run": "–",
}
SHORT = re.compile(r"\(([^()]+)\)$")
"""Authors and year at the end of a paper's title."""
READINGS = re.compile("_(shared|public_code|same_constants|same_rule|at_equal)$")
"""What tells claims apart that are one claim of the paper, read in several ways."""
NOTE = """Verdicts hold whenever one looks: each has an e-value of at least 20, and at most 5 % of them are expected to
be wrong. [How to read them](../howto/reproduce.md#read-a-verdict), and [how far to trust
them](../evidence.md)."""

COMMANDS = """`coband reproduce all --resume` runs what is open;
`coband reproduce --verify 20 --results docs/reproductions/results` checks the numbers behind this page and runs a
sample of the jobs again."""


def write(where: Path, pages: Path) -> list[Path]:
    """Write all pages and pictures from the results files of a folder.

    Args:
        where: the folder of results files.
        pages: the folder of the pages; files of the same names are replaced.

    Returns:
        The files, the index first.

    Raises:
        ResultsError: a results file cannot be read.
    """
    pages.mkdir(parents=True, exist_ok=True)
    files = dict(texts(where))
    for name, text in files.items():
        (pages / name).write_text(text, encoding="utf-8")
    return [pages / name for name in files]


def texts(where: Path) -> Iterator[tuple[str, str]]:
    """The name and the text of every file."""
    outcomes, placed, papers = results.read(where), reading.claims(), reading.papers()
    found = _verdicts(placed, outcomes)
    yield "index.md", _index(placed, papers, outcomes, found)
    for name, paper in papers.items():
        figures = results.curves(where, name)
        claims = [one for one in placed if one.paper == name]
        yield f"{name}.md", _paper(name, paper, claims, outcomes, found, figures)
        for number, figure in enumerate(figures, start=1):
            yield from zip(_pictures(name, number, figure), svgs(figure), strict=True)


def _pictures(name: str, number: int, figure: Mapping[str, Any]) -> list[str]:
    """The file of each panel of a paper's figure."""
    return [f"{name}_{number}_{place}.svg" for place in range(1, len(figure["panels"]) + 1)]


def _verdicts(placed: Sequence[PlacedClaim], outcomes: Mapping[str, Outcome]) -> dict[str, Verdict]:
    """The verdicts of claims that have results, by key; results of other settings say nothing of a claim."""
    known = [one.key for one in placed if one.key in outcomes and not is_of_other_settings(outcomes[one.key], one)]
    return dict(zip(known, verdicts([outcomes[key] for key in known]), strict=True))


def badge(where: Path) -> str:
    """One line for a README: how many of all claims were tried, and what came out."""
    outcomes = results.read(where)
    counts = Counter(_verdicts(reading.claims(), outcomes).values())
    dates = sorted(str(one.origin.get("date", "")) for one in outcomes.values())
    tried = sum(counts.values()) - counts["not run"]
    date = f"; last run {dates[-1]}" if dates else ""
    same = counts["no practical difference"]
    alike = f"{same} show no practical difference, " if same else ""
    return (
        f"{tried} of {len(reading.claims())} claims tried: {counts['holds']} hold, {counts['does not hold']} do not, "
        f"{alike}{counts['undecided']} are undecided{date}."
    )


def _index(
    placed: Sequence[PlacedClaim],
    papers: Mapping[str, Paper],
    outcomes: Mapping[str, Outcome],
    found: Mapping[str, Verdict],
) -> str:
    counts = Counter((one.paper, found.get(one.key, "not run")) for one in placed)
    lines = ["# What the papers claim, and what holds", "", f"**{len(placed)} claims.** {NOTE}", ""]
    lines += [f"| | {' | '.join(MARKS.values())} |", "|---|" + "---|" * len(MARKS)]
    for name, paper in papers.items():
        cells = " | ".join(str(counts[name, verdict] or "") for verdict in MARKS)
        lines.append(f"| [{_short(paper)}]({name}.md) | {cells} |")
    sums = (sum(counts[name, verdict] for name in papers) for verdict in MARKS)
    lines += [f"| all | {' | '.join(map(str, sums))} |", ""]
    lines += [" · ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items()), ""]
    lines += _changes(placed, outcomes, found)
    lines += ["## All claims", "", COMMANDS]
    for name, paper in papers.items():
        lines += ["", f"### {_short(paper)}", "", f"[{paper.title}]({name}.md)", ""]
        lines += [f"- {_line(one, outcomes, found)}" for one in placed if one.paper == name]
    return "\n".join([*lines, "", "```{toctree}", ":hidden:", "", *papers, "```", ""])


def _changes(placed: Sequence[PlacedClaim], outcomes: Mapping[str, Outcome], found: Mapping[str, Verdict]) -> list[str]:
    """How many verdicts are new since those before, and, folded up, which."""
    changed = [(one, outcomes[one.key].before or "undecided") for one in placed if one.key in found]
    changed = [(one, old) for one, old in changed if outcomes[one.key].before and old != found[one.key]]
    if not changed:
        return []
    counts = Counter(f"{MARKS[old]} → {MARKS[found[one.key]]}" for one, old in changed)
    total = " · ".join(f"{step} {count}" for step, count in counts.most_common())
    listed = [f"- {MARKS[old]} → {_line(one, outcomes, found)}" for one, old in changed]
    summary = f"<summary>{len(changed)} verdicts have changed since those before: {total}</summary>"
    return ["<details>", summary, "", *listed, "", "</details>", ""]


def _short(paper: Paper) -> str:
    """Authors and year, or the title of studies of coband itself."""
    cited = SHORT.search(paper.title)
    return cited[1] if cited and paper.cites else SHORT.sub("", paper.title).strip()


def _line(placed: PlacedClaim, outcomes: Mapping[str, Outcome], found: Mapping[str, Verdict]) -> str:
    outcome, verdict = outcomes.get(placed.key), found.get(placed.key, "not run")
    link = f"[{placed.claim.title}]({placed.paper}.md#{_anchor(placed)})"
    words = verdict if outcome is None else in_words(outcome, placed.claim, verdict)
    at = "" if words == verdict else f" · **{words}**"
    return f"{MARKS[verdict]} {link}{at}"


def _paper(
    name: str,
    paper: Paper,
    claims: Sequence[PlacedClaim],
    outcomes: Mapping[str, Outcome],
    found: Mapping[str, Verdict],
    figures: Sequence[Mapping[str, Any]],
) -> str:
    lines = [f"# {paper.title}", "", f"All claims again: `coband reproduce {name}`. [All papers](index.md)", ""]
    for number, figure in enumerate(figures, start=1):
        counts = sorted({line["replications"] for panel in figure["panels"] for line in panel["lines"]})
        n = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        titles = (f"{figure['title']}, {panel['title']}" for panel in figure["panels"])
        files = _pictures(name, number, figure)
        lines += [f"## {figure['title']}", "", *map("![{}]({})".format, titles, files), ""]
        lines += [f"Drawn as {figure['where']}: means over {n} replications, 95 % Student intervals.", ""]
        lines += _published(figure, paper)
    notes = _notes(claims)
    if notes:
        lines += ["## Notes", "", "What several claims leave open, or have different from the paper:", ""]
        lines += [*(f"{number}. {note}" for note, number in notes.items()), ""]
    for one in claims:
        lines += _claim(one, outcomes.get(one.key), found.get(one.key, "not run"), notes)
        lines += _others(one, claims, found)
    return "\n".join(lines).rstrip() + "\n"


def _notes(claims: Sequence[PlacedClaim]) -> dict[str, int]:
    """Number the long remarks that several claims have in common."""
    remarks = (settings for one in claims for settings in (one.claim.open, one.claim.ours))
    counts = Counter(note for settings in remarks for note in _said(settings) if len(note.split()) > 8)
    return {note: number for number, note in enumerate((one for one in counts if counts[one] > 1), start=1)}


def _said(settings: Mapping[str, str | OpenSpace]) -> Iterator[str]:
    for key, value in settings.items():
        told = value if isinstance(value, str) else f"{', '.join(map(str, value.values))} are tried ({value.why})"
        yield f"{key}: {told}"


def _claim(placed: PlacedClaim, outcome: Outcome | None, verdict: Verdict, notes: Mapping[str, int]) -> list[str]:
    claim = placed.claim
    lines = [f"({_anchor(placed)})=", f"## {MARKS[verdict]} {claim.title}", ""]
    who = {"paper": "", "public code": "; claimed by the public code", "coband": "; claimed by coband"}[claim.source]
    words = verdict if outcome is None else in_words(outcome, claim, verdict)
    lines += [f"**{words}** · {claim.where}{who} · `coband reproduce {placed.key}`", "", claim.statement.strip(), ""]
    for setting, part in ({} if outcome is None else outcome.parts()).items():
        lines += [f"At {setting}:", ""] if setting else []
        before, after = _common([one.text for one in part])
        head = _cell(" … ".join(filter(None, (before.removesuffix(": "), after.strip())))) or "condition"
        lines += [f"| {head} | estimate | 95 % interval | effect size | replications |", "|---|---|---|---|---|"]
        lines += [*(_finding(one, before, after) for one in part), ""]
        lines += [first(part), ""] if part[0].before and part[0].rows else []
    if outcome is not None and is_of_other_settings(outcome, placed):
        lines += ["*Of other settings:* the claim or its scenario has changed since; the command tries it again.", ""]
    lines += list(_remarks(claim, outcome, verdict, notes))
    return lines


def _published(figure: Mapping[str, Any], paper: Paper) -> list[str]:
    """What the authors publish of a figure in numbers, in the paper or with its code, beside the ends of our lines."""
    panels = [panel for one in paper.figures if one.title == figure["title"] for panel in one.panels]
    published = {(panel.title, label): value for panel in panels for label, value in panel.published.items()}
    rows = []
    for panel in figure["panels"]:
        for line in panel["lines"]:
            value = published.get((panel["title"], line["label"]))
            if value is not None:
                band = None if line["low"] is None else (line["low"][-1], line["high"][-1])
                ours = f"{numerals.like(line['mean'][-1], band)} | {numerals.bounds(band)} | {line['replications']}"
                rows.append(f"| {panel['title']} | {_cell(line['label'])} | {value:g} | {ours} |")
    head = [
        "| panel | line | published by the authors | here | 95 % interval | replications |",
        "|---|---|---|---|---|---|",
    ]
    sources = dict.fromkeys(panel.published_in for panel in panels if panel.published)
    return [f"*Published by the authors:* {'; '.join(sources)}.", "", *head, *rows, ""] if rows else []


def _others(placed: PlacedClaim, known: Sequence[PlacedClaim], found: Mapping[str, Verdict]) -> Iterator[str]:
    """The same claim read in other ways: with networks in one storage, or constants of the public code."""
    own = READINGS.sub("", placed.name)
    others = [one for one in known if READINGS.sub("", one.name) == own and one.name != placed.name]
    if others:
        verdicts = (found.get(one.key, "not run") for one in others)
        links = [
            f"{MARKS[verdict]} {verdict}: [{one.claim.title}](#{_anchor(one)})"
            for one, verdict in zip(others, verdicts, strict=True)
        ]
        yield f"*Side by side:* {'; '.join(links)}."
        yield ""


def _common(texts: Sequence[str]) -> tuple[str, str]:
    """Return what several conditions all begin with, up to a colon, and end with, from a share of a curve on."""
    before = "".join(texts[0].partition(": ")[:2])
    after = re.search(r" from [\d.]+ % to .*$|$", texts[0])[0]  # type: ignore[index]
    alike = len(texts) > 1
    return (
        before if alike and before.endswith(": ") and all(one.startswith(before) for one in texts) else "",
        after if alike and all(one.endswith(after) for one in texts) else "",
    )


def _finding(one: Finding, before: str, after: str) -> str:
    interval = numerals.bounds(one.interval)
    estimate = "-" if one.estimate is None else numerals.like(one.estimate, one.interval)
    effect = "-" if one.effect is None else f"{one.effect:.2g}"
    text = re.sub(r" (\([^()]+\))(?=.* \1$)", "", _cell(one.text.removeprefix(before).removesuffix(after)))
    return f"| {text} | {estimate} | {interval} | {effect} | {one.count} |"


def _remarks(claim: Claim, outcome: Outcome | None, verdict: Verdict, notes: Mapping[str, int]) -> Iterator[str]:
    for title, settings in (("Left open, and chosen here", claim.open), ("Different here", claim.ours)):
        if settings:
            said = (
                f"{note.partition(':')[0]} (note {notes[note]})" if note in notes else note for note in _said(settings)
            )
            yield f"*{title}:* {'; '.join(said)}."
            yield ""
    unknown = claim.not_run or "no replication of its present settings is on file yet"
    reason = unknown if outcome is None or not (outcome.reason or outcome.replications) else outcome.reason
    if reason:
        yield f"*Not run, or not to the end:* {reason.rstrip('.')}."
        yield ""
    if outcome is not None and verdict == "undecided" and outcome.replications:
        yield f"*Forecast:* {forecast(outcome)}."
        yield ""
    if outcome is not None and outcome.chosen:
        yield f"*Chosen on seeds of their own:* {'; '.join(in_settings(claim, outcome))}."
        yield ""
    if claim.analysis:
        yield f"*Why:* {claim.analysis.strip()}"
        yield ""
    if outcome is not None and outcome.replications:
        yield _origin(outcome)
        yield ""


def _origin(outcome: Outcome) -> str:
    git = outcome.origin.get("git") or {}
    commit = f", commit {str(git['commit'])[:10]}{' with changes' if git.get('dirty') else ''}" if git else ""
    version = (outcome.origin.get("versions") or {}).get("coband")
    e_value = numerals.evidence(math.exp(min(outcome.nearest[1], 10.0)))  # no page tells larger ones apart
    e_value = e_value if e_value[0] in "<>" else f"= {e_value}"
    size = f"{outcome.size} sizes"
    seed = f"; seed {outcome.origin['seed']}" if "seed" in outcome.origin else ""
    where = f"coband {version}{commit}, {outcome.origin.get('date', '')}"
    return f"<small>{size}{seed}; e {e_value}; {outcome.cpu_hours:.2g} CPU hours; {where}.</small>"


def _anchor(placed: PlacedClaim) -> str:
    return f"{placed.paper}-{placed.name}".replace("_", "-")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
