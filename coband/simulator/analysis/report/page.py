"""The report as one self-contained HTML file: who wins, a section for each panel, and how the runs were made."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from itertools import count
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from coband.simulator.analysis.comparison.analysis import Analysis
from coband.simulator.analysis.comparison.data import as_given, name_of
from coband.simulator.analysis.report import words
from coband.simulator.analysis.report.catalogue import panels
from coband.simulator.analysis.report.drawing import entries, inline_figures
from coband.simulator.analysis.report.panel import Panel
from coband.simulator.analysis.report.style import HEADINGS, SIZE, Styles, styled
from coband.simulator.analysis.report.svg import inline, static
from coband.simulator.experiments.runs.expectations import ROUNDING
from coband.simulator.experiments.safe_text import visible
from coband.simulator.experiments.statistics.numerals import between, number
from coband.simulator.experiments.store.store import StoredRun

PACKAGE = "coband.simulator.analysis.report"
MAX_ENVIRONMENTS = 12
"""Largest number of environments in a page; the table of winners has all."""
FOLDED = 2
"""With more environments only the first drawings of the main panels are open."""
MAX_ROWS = 12
"""With more labels a drawing with rows has the best ones only."""
TALL = ("messages", "reproduce")
"""The sections before which the list of contents scrolls away, instead of covering their tops."""
MAX_LINES = 200
"""Rows of a table in the page; ``coband plot --format csv`` writes all."""
NUMBER = re.compile(r"[-−+]?[\d,.]+( ± [\d,.]+| %)?|-|")
ELSEWISE = {"live", "not_installed"}
"""Manifest keys of runs that their scenario by itself does not repeat."""
HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">"""


def page(analysis: Analysis) -> str:
    """The report as the text of an HTML file; the same runs give the same text."""
    comparison = analysis.comparison
    title = escape(comparison.title)
    description = next((text for one in comparison.scenarios if (text := one.get("description"))), "")
    facts = "".join(f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in words.facts(analysis))
    body = list(_sections(analysis))
    if max(len(one.labels) for one in analysis.within) > 1:
        body.insert(0, ("summary", "Who wins", "Who wins", _summary(analysis)))
    body.append(("reproduce", "Reproduce", "Scenario, and how to reproduce", "\n".join(_made(comparison.runs))))
    links = "".join(f'<li><a href="#{anchor}">{escape(link)}</a></li>' for anchor, link, _, _ in body)
    sections = [
        f'<section id="{anchor}" aria-labelledby="{anchor}-title">\n<h2 id="{anchor}-title">{escape(heading)}</h2>\n'
        f"{content}\n</section>"
        for anchor, _, heading, content in body
    ]
    tall = next(place for place, (anchor, *_) in enumerate(body) if anchor in TALL)
    text = f"""{HEAD}
<title>{title} · coband</title>
<style>
{static(PACKAGE, "report.css")}
</style>
</head>
<body>
<a class="skip" href="#{body[0][0]}">Skip to the results</a>
<div class="page">
<header>
<h1>{title}</h1>
{f'<p class="lead">{escape(str(description))}</p>' if description else ""}
<dl class="facts">{facts}</dl>
{"".join(f'<p class="remark">{escape(one)}</p>' for one in words.remarks(analysis))}
</header>
<main>
<div class="guided">
<nav aria-label="Contents"><ul>{links}</ul></nav>
{"".join(sections[:tall])}
</div>
{"".join(sections[tall:])}
</main>
<footer>Made by coband from the stored run only. This file is complete: it loads nothing from anywhere.</footer>
</div>
<script>
{static(PACKAGE, "wide.js")}
</script>
</body>
</html>"""
    return visible(text) + "\n"


def prose(text: str) -> str:
    """Text as HTML, with no end of a line between a number and its per cent sign."""
    return escape(text).replace(" %", "&nbsp;%")


def _summary(analysis: Analysis) -> str:
    """One message first, then the other measures; in a sweep a row for each environment."""
    level = f'<p class="said">{prose(words.levels(analysis))}</p>'
    if len(analysis.within) > 1:
        aim = [
            {"environment": one.environment, analysis.measures[0].heading: words.winner(one)} for one in analysis.within
        ]
        rest = [
            {"environment": one.environment, "measure": each.measure.heading, "in words": each.sentence}
            for one in analysis.within
            for each in one.rankings[1:]
        ]
        return f"{table(pd.DataFrame(aim))}{_folded('The other measures', pd.DataFrame(rest))}{level}"
    (one,) = analysis.within
    first = [words.winner(one), words.at_equal_time(one)]
    lead = "".join(f'<p class="lead">{prose(text)}</p>' for text in first if text)
    others = "".join(f"<li>{escape(each.measure.heading)}: {escape(each.sentence)}</li>" for each in one.rankings[1:])
    return f"{lead}<ul>{others}</ul>{level}"


def _sections(analysis: Analysis) -> Iterator[tuple[str, str, str, str]]:
    """(anchor, name in the list of contents, heading, content) of each panel with rows."""
    styles, ids = Styles(analysis), count()
    shown = {one.environment for one in analysis.within[:MAX_ENVIRONMENTS]}
    for one in panels().values():
        frame = one.numbers(analysis)
        if frame.empty:
            continue
        if "environment" in frame and not one.whole:
            frame = frame[frame["environment"].isin(shown)]
        many = len(analysis.within) > FOLDED
        drawn, cut = _best(one, frame, styles)
        content = one.html(analysis) if one.html else _figures(one, drawn, styles, ids, many)
        content += f'<p class="said">{prose(one.caption)}{cut}</p>'
        if one.html is None:
            content += _folded("The numbers", numbers(one.table(texts(frame))))
        if many and not one.main and not one.html:
            content = f"<details><summary>Figures of {len(shown)} environments</summary>{content}</details>"
        yield one.name, one.title.partition(" of ")[0], one.title, content


def _best(panel: Panel, frame: pd.DataFrame, styles: Styles) -> tuple[pd.DataFrame, str]:
    """The rows that a drawing has room for, and a sentence about the others."""
    labels = set(frame["label"]) if panel.rows and "label" in frame else set[str]()
    bold = styles.bold(labels)
    if len(labels) <= MAX_ROWS or not bold:
        return frame, ""
    text = f" The figure has the best label of each algorithm and others up to {len(bold)} of {len(labels)}."
    return frame[frame["label"].isin(bold)], text


def _figures(panel: Panel, frame: pd.DataFrame, styles: Styles, ids: Iterator[int], many: bool) -> str:
    """The drawings of a panel: a line of the grid for each value of ``each``, above all a legend in HTML.

    Args:
        many: whether there are many environments, so that lines after the first are folded.
    """
    if panel.draw is None:
        return ""
    parts = panel.parts(frame)
    made = inline_figures(panel, parts, styles)
    found = entries([figure.axes[0] for figure in made])
    signs = "".join(f"<li>{_sign(handle, next(ids))}{escape(name)}</li>" for name, handle in found.items())
    legend = f'<ul class="legend">{signs}</ul>' if found else ""
    lines: dict[str, list[str]] = {}
    several = panel.each is not None and "environment" in frame
    for figure, (key, _) in zip(made, parts, strict=True):
        label = f"{panel.title} {', '.join(key)}".strip()
        drawing = f"<figure>{_svg(figure, next(ids), label)}</figure>"
        lines.setdefault(key[0] if several else "", []).append(drawing)
    grids = {key: f'<div class="grid">{"".join(line)}</div>' for key, line in lines.items()}
    first, *rest = grids
    if not many or panel.whole or not rest:
        return legend + "\n".join(grids.values())
    names = escape(", ".join(HEADINGS.get(one, one) for one in rest))
    folded = "\n".join(grids[one] for one in rest)
    return f"{legend}{grids[first]}<details><summary>The same of {names}</summary>{folded}</details>"


def _svg(figure: Figure, number: int, title: str) -> str:
    with styled():
        text = inline(figure, f"f{number}", title)
    return re.sub(r'<g id="f\d+-tip:([^"]*)">', r'<g class="tip"><title>\1</title>', text)


def _sign(handle: Any, number: int) -> str:
    """An entry of a legend as a picture of its own, so that the page wraps them."""
    with styled():
        figure = Figure(figsize=(0.4, 0.16))
        figure.legend([handle], [""], loc="center", handlelength=0.36 * 72 / SIZE, borderpad=0, handletextpad=0)
        text = _svg(figure, number, "")
    return text.replace('role="img" aria-label=""', 'aria-hidden="true"')


def texts(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with texts such as "41.4 ± 2.7" in place of means and their intervals."""
    found = frame.copy()
    cells: list[tuple[float, tuple[float, float] | None]]
    for mean in [one for one in ("mean", "cost_mean") if one in frame]:
        low, high = (mean.replace("mean", end) for end in ("low", "high"))
        ends = zip(frame[low], frame[high], strict=True) if low in frame else ((None, None),) * len(frame)
        cells = [(value, None if pd.isna(a) else (a, b)) for value, (a, b) in zip(frame[mean], ends, strict=True)]
        found[mean] = [between(value, interval) for value, interval in cells]
        found = found.drop(columns=[one for one in (low, high) if one in frame])
    return found


def numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its numbers as texts."""
    found = frame.copy()
    for name in found.columns:
        if pd.api.types.is_numeric_dtype(found[name]):
            found[name] = ["" if pd.isna(one) else number(one) for one in found[name]]
    return found


def table(frame: pd.DataFrame, most: int = MAX_LINES) -> str:
    """The first rows of a table of texts; columns that have something else than numbers are at the left."""
    shown = frame.head(most).astype(str)
    names = [str(name).replace("_", " ") for name in shown.columns]
    left = ["" if all(map(NUMBER.fullmatch, shown[name])) else ' class="text"' for name in shown.columns]
    head = "".join(f'<th scope="col"{one}>{escape(name)}</th>' for name, one in zip(names, left, strict=True))
    rows = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td{one}>{escape(cell)}</td>" for cell, one in zip(rest, left[1:], strict=True))
        + "</tr>\n"
        for first, *rest in shown.itertuples(index=False)
    )
    more = f"<p>The first {most} of {len(frame):,} rows.</p>" if len(frame) > most else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="Table"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>\n{rows}</tbody></table></div>{more}"
    )


def _folded(title: str, frame: pd.DataFrame) -> str:
    return "" if frame.empty else f"<details><summary>{title}</summary>{table(frame)}</details>"


def repeats(run: StoredRun) -> bool:
    """Whether ``coband run`` with the run's scenario gives the same fingerprints."""
    return not as_given(run) and not ELSEWISE & run.manifest.keys()


def _made(runs: Iterable[StoredRun]) -> Iterator[str]:
    """How each run was made: its command, versions, scenario, and fingerprints."""
    several = len(list(runs)) > 1
    for run in runs:
        if several:
            yield f"<h3>{escape(name_of(run))}</h3>"
        command = shlex.join(["coband", *map(str, (run.manifest.get("command") or ["coband", "run"])[1:])])
        given = (
            "With the scenario file below, which is as it was given, this command gives the same fingerprints again."
        )
        yield f"<p>The run was made by <code>{escape(command)}</code>. {given if as_given(run) else ''}</p>"
        if repeats(run):
            yield AGAIN
        terms = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in _provenance(run.manifest))
        yield f'<dl class="terms">{terms}</dl>'
        name = "Scenario file" if as_given(run) else "Resolved scenario"
        yield f'<details><summary>{name}</summary><pre tabindex="0"><code>{escape(run.scenario)}</code></pre></details>'
        rows = [
            (job.label, job.replication, job.record["fingerprint"], _gap(job.record.get("closest_decision")))
            for job in run.jobs
            if job.record is not None
        ]
        found = pd.DataFrame(rows, columns=["label", "replication", "fingerprint", "closest decision"])
        yield f"<details><summary>Fingerprints</summary>{table(found, len(found))}<p>{CLOSEST}</p></details>"


AGAIN = """<p>Its resolved scenario below gives the same fingerprints again: save it as
<code>scenario.yaml</code>, then</p>
<pre><code>coband run scenario.yaml
coband show latest --table results</code></pre>"""
CLOSEST = (
    "SHA-256 over every event of a job, and the smallest gap between the best arm's score and the next one at any "
    f"turn, as a share of the larger one: below {ROUNDING:.0e} rounding may have decided, so that another kind of "
    "processor may come to other results."
)


def _provenance(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    versions, hardware = manifest.get("versions") or {}, manifest.get("hardware") or {}
    blas = [
        " ".join(str(one[key]) for key in ("internal_api", "version", "architecture") if one.get(key))
        for one in manifest.get("blas") or []
    ]
    found = {
        "seed": manifest.get("seed", ""),
        "started": manifest.get("started", ""),
        "finished": manifest.get("finished") or "not finished",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items() if version),
        "platform": (manifest.get("platform") or {}).get("system", ""),
        "BLAS": ", ".join(dict.fromkeys(blas)),
        **{name: hardware.get(name, "") for name in ("processor", "numpy's SIMD features", "C library")},
    }
    return ((name, str(text)) for name, text in found.items() if str(text))


def _gap(value: Any) -> str:
    return f"{value:.1e}" if isinstance(value, float) else "-"
