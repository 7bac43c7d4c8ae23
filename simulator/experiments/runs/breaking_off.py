"""What is said of a job that broke off: a mistake of a plugin in one sentence, other errors from its first line on."""

from __future__ import annotations

import traceback
from types import TracebackType

from coband.simulator.core.nodes.mistakes import NodeMistake
from coband.simulator.experiments.sweep.foreign_code import foreign

LIBRARIES = {"numpy", "scipy", "pydantic", "simpy"}
"""Packages that coband itself uses."""


def told(error: Exception) -> str:
    """The text of a mistake, with the place in the code of a plugin; of other errors the traceback.

    Where the code of a plugin is involved the traceback begins with its first line, and what of coband called it is
    left out.
    """
    frames = list[TracebackType]()
    frame = error.__traceback__
    while frame is not None:
        frames += [frame] if _of_a_plugin(frame) else []
        frame = frame.tb_next
    if not isinstance(error, NodeMistake):
        return "".join(traceback.format_exception(type(error), error, frames[0] if frames else error.__traceback__))
    if error.placed or not frames:
        return str(error)
    return f"{frames[-1].tb_frame.f_code.co_filename}:{frames[-1].tb_lineno}: {error}"


def _of_a_plugin(frame: TracebackType) -> bool:
    module = str(frame.tb_frame.f_globals.get("__name__", ""))
    return foreign(module) and module.partition(".")[0] not in LIBRARIES
