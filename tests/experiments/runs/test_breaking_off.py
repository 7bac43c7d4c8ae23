"""What is said of jobs that broke off: mistakes with their place in a plugin, else tracebacks."""

from collections.abc import Callable
from typing import Any

import numpy as np

from coband.simulator.core.clock.clock import Clock
from coband.simulator.core.nodes.message import NodeMistake, mistake
from coband.simulator.experiments.runs.attempt import told


def _told(act: Callable[[Any], object]) -> str:
    """What is said where something of a plugin, which this module stands for, is called by coband's clock."""
    clock = Clock()
    clock.at(0.0, 0, 0, act, None)
    try:
        clock.run()
    except Exception as error:
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # this function is not a plugin
        return told(error)
    raise AssertionError("nothing was raised")


def _raise(error: Exception) -> None:
    raise error


def test_a_mistake_is_one_sentence_with_the_line_of_the_plugin() -> None:
    words = _told(lambda _: _raise(NodeMistake("write it in another way")))
    assert words == f"{__file__}:{_raise.__code__.co_firstlineno + 1}: write it in another way"


def test_a_mistake_that_has_a_place_keeps_it() -> None:
    words = _told(lambda _: _raise(mistake(_told, "write it in another way")))
    assert words == f"{__file__}:{_told.__code__.co_firstlineno}: write it in another way"


def test_the_traceback_of_a_plugin_begins_with_its_first_line() -> None:
    words = _told(lambda _: np.zeros(3).reshape(2, 2)).splitlines()
    assert words[0].startswith("Traceback")
    assert words[1].startswith(f'  File "{__file__}"')
    assert words[-1].startswith("ValueError: cannot reshape")


def test_errors_of_coband_keep_all_of_their_traceback() -> None:
    words = _told(Clock().at).splitlines()  # called with too few arguments
    assert words[1].endswith("in run")
    assert "clock.py" in words[1]
