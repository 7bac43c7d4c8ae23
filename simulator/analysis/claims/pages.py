"""The pages about claims: a table of all of them, and one page for each paper with its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from coband.simulator.analysis.claims import drawing, reading, results
from coband.simulator.analysis.claims.claim import Claim, Paper, PlacedClaim
from coband.simulator.analysis.claims.conditions import Finding
from coband.simulator.analysis.claims.outcome import Outcome, Verdict, verdicts
from coband.simulator.analysis.claims.settings import is_of_other_settings
from coband.simulator.experiments.statistics import numerals

MARKS: Mapping[Verdict, str] = {"holds": "🟢", "does not hold": "🔴", "undecided": "🟡", "not run": "⚪"}
NOTE = """A claim *holds* or *does not hold* where one-sided tests of all its conditions say so after Bonferroni's
correction for the number of looks at the data, with a false discovery rate of at most 5 % over all claims (Benjamini
and Yekutieli 2001). The others are *undecided*; a claim that needs data or time that was not there is *not run*.

The *effect size* of a condition is the mean of its inequality, of several the one nearest to its border, in standard
deviations over replications: positive numbers speak for the condition. There is none (-) where all replications give
the same number."""

COMMANDS = """`coband reproduce all --resume` runs what is open;
`coband reproduce --verify 20 --results docs/reproductions/results` runs a sample of the jobs behind this page again and
compares fingerprints."""


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
    known = [one for one in placed if one.key in outcomes]
    found = dict(zip((one.key for one in known), verdicts([outcomes[one.key] for one in known]), strict=True))
    yield "index.md", _index(placed, papers, outcomes, found)
    for name, paper in papers.items():
        figures = results.curves(where, name)
        claims = [one for one in placed if one.paper == name]
        yield f"{name}.md", _paper(name, paper, claims, outcomes, found, figures)
        for number, figure in enumerate(figures, start=1):
            yield f"{name}_{number}.svg", drawing.svg(figure)


def badge(where: Path) -> str:
    """One line for a README: how many of all claims were tried, and what came out."""
    outcomes = results.read(where)
    counts = Counter(verdicts(list(outcomes.values())))
    dates = sorted(str(one.origin.get("date", "")) for one in outcomes.values())
    tried = sum(counts.values()) - counts["not run"]
    date = f"; last run {dates[-1]}" if dates else ""
    return (
        f"{tried} of {len(reading.claims())} claims tried: {counts['holds']} hold, "
        f"{counts['does not hold']} do not, {counts['undecided']} are undecided{date}."
    )


def _index(
    placed: Sequence[PlacedClaim],
    papers: Mapping[str, Paper],
    outcomes: Mapping[str, Outcome],
    found: Mapping[str, Verdict],
) -> str:
    counts = Counter(found.get(one.key, "not run") for one in placed)
    summary = ", ".join(f"{MARKS[verdict]} {counts[verdict]} {verdict}" for verdict in MARKS)
    lines = ["# What the papers claim, and what holds", "", NOTE, "", f"**{len(placed)} claims: {summary}.**", ""]
    lines += [COMMANDS]
    for name, paper in papers.items():
        lines += ["", f"## [{paper.title}]({name}.md)", "", "| | claim | where | verdict | replications |"]
        lines.append("|---|---|---|---|---|")
        for one in placed:
            if one.paper == name:
                verdict, outcome = found.get(one.key, "not run"), outcomes.get(one.key)
                count = "-" if outcome is None or not outcome.replications else str(outcome.replications)
                link = f"[{_cell(one.claim.title)}]({name}.md#{_anchor(one)})"
                lines.append(f"| {MARKS[verdict]} | {link} | {_cell(one.claim.where)} | {verdict} | {count} |")
    return "\n".join(lines) + "\n\n" + _toctree(papers)


def _toctree(papers: Mapping[str, Paper]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", "", *papers, "```", ""])


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
        lines += [f"## {figure['title']}", "", f"![{figure['title']}]({name}_{number}.svg)", ""]
        lines += [f"Drawn as {figure['where']}: means over {n} replications, 95 % Student intervals.", ""]
    for one in claims:
        lines += _claim(one, outcomes.get(one.key), found.get(one.key, "not run"))
    return "\n".join(lines).rstrip() + "\n"


def _claim(placed: PlacedClaim, outcome: Outcome | None, verdict: Verdict) -> list[str]:
    claim = placed.claim
    lines = [f"({_anchor(placed)})=", f"## {MARKS[verdict]} {claim.title}", ""]
    who = {"paper": "", "public code": "; claimed by the public code", "coband": "; claimed by coband"}[claim.source]
    lines += [f"**{verdict}** · {claim.where}{who} · `coband reproduce {placed.key}`", "", claim.statement.strip(), ""]
    if outcome is not None and outcome.findings:
        lines += ["| condition | estimate | 95 % interval | effect size | replications |", "|---|---|---|---|---|"]
        lines += [_finding(one) for one in outcome.findings]
        lines.append("")
    if outcome is not None and is_of_other_settings(outcome, placed):
        lines += ["*Of other settings:* the claim or its scenario has changed since; the command tries it anew.", ""]
    lines += list(_remarks(claim, outcome, verdict))
    return lines


def _finding(one: Finding) -> str:
    interval = numerals.bounds(one.interval)
    estimate = "-" if one.estimate is None else numerals.like(one.estimate, one.interval)
    effect = "-" if one.effect is None else f"{one.effect:.2g}"
    return f"| {_cell(one.text)} | {estimate} | {interval} | {effect} | {one.count} |"


def _remarks(claim: Claim, outcome: Outcome | None, verdict: Verdict) -> Iterator[str]:
    for title, settings in (("Open in the paper", claim.open), ("Different here", claim.ours)):
        if settings:
            yield f"*{title}:* {'; '.join(f'{key}: {value}' for key, value in settings.items())}."
            yield ""
    reason = claim.not_run if outcome is None else outcome.reason
    if reason:
        yield f"*Not run, or not to the end:* {reason.rstrip('.')}."
        yield ""
    if outcome is not None and verdict == "undecided" and outcome.needed is not None:
        cost = "" if outcome.cost_hours is None else f" (about {outcome.cost_hours:.2g} CPU hours more)"
        yield f"*Open:* about {outcome.needed} replications would decide it{cost}."
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
    p = min(outcome.holds, outcome.fails)
    shown = "< 0.0001" if p < 1e-4 else f"= {p:.2g}"
    size = "the papers' sizes" if outcome.size == "full" else f"{outcome.size} sizes"
    seed = f"; seed {outcome.origin['seed']}" if "seed" in outcome.origin else ""
    where = f"coband {version}{commit}, {outcome.origin.get('date', '')}"
    return f"<small>{size}{seed}; p {shown}; {outcome.cpu_hours:.2g} CPU hours; {where}.</small>"


def _anchor(placed: PlacedClaim) -> str:
    return f"{placed.paper}-{placed.name}".replace("_", "-")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
