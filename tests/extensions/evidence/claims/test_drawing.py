"""Colours of the papers' figures."""

import re
from typing import Any

import pytest

from coband.extensions.evidence.claims.figures import styles_of, svgs


def test_an_algorithm_has_one_colour_whatever_its_parameter() -> None:
    styles = styles_of(["DUETS 0.2", "Dis 0.2", "DUETS 0.5", "Approx-Dis 1e-3", "Approx-Dis -2", "N", "DUETS 0.2"])
    assert list(styles) == ["DUETS 0.2", "DUETS 0.5", "Dis 0.2", "Approx-Dis 1e-3", "Approx-Dis -2", "N"]
    assert styles["DUETS 0.2"].colour == styles["DUETS 0.5"].colour
    assert styles["DUETS 0.2"].dash != styles["DUETS 0.5"].dash
    assert len({style.colour for style in styles.values()}) == 4


def test_names_that_end_in_a_word_are_algorithms_of_their_own() -> None:
    styles = styles_of(["FN-UCB", "FN-UCB (Less Comm.)", "IndRAGE", "IndRAGE (code)"])
    assert len({style.colour for style in styles.values()}) == 4


def test_numbers_of_agents_are_parameters() -> None:
    styles = styles_of(
        ["FN-UCB (agents = 2)", "NeuralUCB (agents = 1)", "FN-UCB (agents = 5)", "FN-UCB (threshold = 0.01)"]
    )
    assert len({style.colour for style in styles.values()}) == 2
    assert len({style.dash for label, style in styles.items() if label.startswith("FN-UCB")}) == 3


HANDLE = 20.0
"""Points that the line beside a name takes at least."""


def figure_of(labels: list[str], panels: int) -> dict[str, Any]:
    line = {"x": [1, 2], "mean": [1.0, 2.0], "low": [0.5, 1.5], "high": [1.5, 2.5]}
    panel = {"title": "a", "of": "regret", "against": "turns", "lines": [{**line, "label": label} for label in labels]}
    return {"title": "t", "where": "w", "panels": [panel] * panels}


@pytest.mark.parametrize("length", [3, 15, 30])
def test_a_panel_is_a_file_as_wide_as_a_phone_with_a_legend_that_fits(length: int) -> None:
    panels = svgs(figure_of([f"{letter}{'x' * length}" for letter in "abcde"], 2))
    assert len(panels) == 2
    assert panels[0] == panels[1]
    legend = panels[0][panels[0].index('<g id="p-legend_1">') :]
    starts = [float(x) for x in re.findall(r'<text [^>]*x="(-?[0-9.]+)"', legend)]
    assert len(starts) == 5
    assert min(starts) > HANDLE  # it is centred, so what fits on the left fits on the right
    assert re.search(r'^<svg [^>]*width="346" ', panels[0])


def test_a_panel_has_the_readers_colours() -> None:
    (panel,) = svgs(figure_of(["a", "b"], 1))
    style, _, body = panel.partition("</style>")
    light, _, dark = style.partition("(prefers-color-scheme: dark)")
    used = set(re.findall(r"var\((--[\w-]+)\)", panel))
    assert {"--series-0", "--series-1", "--ink", "--paper"} <= used
    assert used <= set(re.findall(r"(--[\w-]+):", light))
    assert used - {"--sans"} <= set(re.findall(r"(--[\w-]+):", dark))
    assert not re.search(r"(?:fill|stroke): #", body)
