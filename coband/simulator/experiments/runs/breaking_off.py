"""What is said of a job that broke off: a mistake of a plugin, or that memory ran out, in one sentence, other errors
from their first line in its code on."""

from __future__ import annotations

import traceback
from types import TracebackType

from coband.simulator.core.nodes.mistakes import NodeMistake
from coband.simulator.plugins.entry_points import of_a_plugin


def told(error: Exception) -> str:
    """The text of a mistake, with the place in the code of a plugin; of other errors the traceback.

    Where the code of a plugin is involved the traceback begins with its first line, and what of coband called it is
    left out. Memory that runs out elsewhere is no mistake of anybody's.
    """
    frames = _frames(error)
    if isinstance(error, MemoryError) and not frames:
        reason = f" ({error})" if str(error) else ""
        return f"out of memory{reason}; take fewer agents, turns or arms, or fewer --workers"
    if not isinstance(error, NodeMistake):
        return "".join(traceback.format_exception(type(error), error, frames[0] if frames else error.__traceback__))
    return _placed(error, frames)


def mistake(error: Exception) -> str:
    """The mistake of a plugin in one sentence, with its place in its code; empty where no plugin is involved."""
    frames = _frames(error)
    return _placed(error, frames) if frames or isinstance(error, NodeMistake) else ""


def _placed(error: Exception, frames: list[TracebackType]) -> str:
    text = str(error) if isinstance(error, NodeMistake) else "".join(traceback.format_exception_only(error)).strip()
    if not frames or getattr(error, "placed", False):
        return text
    return f"{frames[-1].tb_frame.f_code.co_filename}:{frames[-1].tb_lineno}: {text}"


def _frames(error: Exception) -> list[TracebackType]:
    """What of a traceback is in the code of plugins."""
    frames, frame = list[TracebackType](), error.__traceback__
    while frame is not None:
        frames += [frame] if of_a_plugin(str(frame.tb_frame.f_globals.get("__name__", ""))) else []
        frame = frame.tb_next
    return frames
