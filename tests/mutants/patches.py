"""A change of what functions do in a program that runs, so that nothing need be imported again to try it."""

from __future__ import annotations

import gc
import inspect
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType


def patches(source: str, changed: str, name: str) -> dict[CodeType, CodeType] | None:
    """Which code becomes which; None where the change is in what runs at import: defaults, decorators, classes."""
    old, new = (_codes(compile(text, name, "exec", dont_inherit=True)) for text in (source, changed))
    if list(old) != list(new):
        return None
    found = {}
    for place, code in old.items():
        if _alike(code, new[place]):
            continue
        if not code.co_flags & inspect.CO_NEWLOCALS or code.co_freevars != new[place].co_freevars:
            return None
        found[code] = new[place]
    return found


def functions(root: Path) -> dict[CodeType, list[FunctionType]]:
    """The functions, of all that there are, whose source lies in a folder, by what they run."""
    gc.unfreeze()  # those that somebody has set aside are not listed
    found: dict[CodeType, list[FunctionType]] = {}
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(str(root)):
            found.setdefault(one.__code__, []).append(one)
    return found


def apply(codes: dict[CodeType, CodeType], live: dict[CodeType, list[FunctionType]]) -> int:
    """Replace the code of functions; returns of how many."""
    found = [(function, new) for old, new in codes.items() for function in live.get(old, ())]
    for function, new in found:
        function.__code__ = new.replace(co_filename=function.__code__.co_filename)
    return len(found)


def _codes(code: CodeType) -> dict[tuple[str, int], CodeType]:
    """All code in a module, by qualified name and how many of that name stand before."""
    before = Counter[str]()
    found = {}
    for one in _inside(code):
        found[one.co_qualname, before[one.co_qualname]] = one
        before[one.co_qualname] += 1
    return found


def _inside(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _inside(one)


def _alike(one: CodeType, other: CodeType) -> bool:
    """Whether they do the same, wherever they stand; what a function does in functions of its own counts, too."""
    names = ("code", "names", "varnames", "freevars", "exceptiontable", "argcount", "posonlyargcount", "kwonlyargcount")
    if any(getattr(one, f"co_{name}") != getattr(other, f"co_{name}") for name in names) or len(one.co_consts) != len(
        other.co_consts
    ):
        return False
    optimised = bool(one.co_flags & inspect.CO_NEWLOCALS)
    for left, right in zip(one.co_consts, other.co_consts, strict=True):
        if isinstance(left, CodeType) and isinstance(right, CodeType):
            if optimised and not _alike(left, right):
                return False
        elif (type(left), repr(left)) != (type(right), repr(right)):
            return False
    return True
