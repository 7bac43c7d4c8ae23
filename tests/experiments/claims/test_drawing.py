"""Colours of the papers' figures."""

from __future__ import annotations

from coband.simulator.experiments.claims.drawing import styles_of


def test_an_algorithm_has_one_colour_whatever_its_parameter() -> None:
    styles = styles_of(["DUETS 0.2", "Dis 0.2", "DUETS 0.5", "Approx-Dis 1e-3", "Approx-Dis -2", "N", "DUETS 0.2"])
    assert list(styles) == ["DUETS 0.2", "DUETS 0.5", "Dis 0.2", "Approx-Dis 1e-3", "Approx-Dis -2", "N"]
    assert styles["DUETS 0.2"].colour == styles["DUETS 0.5"].colour
    assert styles["DUETS 0.2"].dash != styles["DUETS 0.5"].dash
    assert len({style.colour for style in styles.values()}) == 4


def test_names_that_end_in_a_word_are_algorithms_of_their_own() -> None:
    styles = styles_of(["FN-UCB", "FN-UCB (Less Comm.)", "IndRAGE", "IndRAGE (code)"])
    assert len({style.colour for style in styles.values()}) == 4
