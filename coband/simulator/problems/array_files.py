"""Arms and rewards as arrays: what may be given, the digest of their content, and the files that keep them."""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.problems.datasets import DataError, file_version
from coband.simulator.problems.world import read_only

SHAPES = {2: "(M, d)", 3: "(T, K, d)", 4: "(N, T, K, d)"}
"""Of arms, by number of axes: the M arms of every turn, logged turns of K arms, logged turns of each of N agents."""
_NUMBERS = "biufO"
"""Kinds of numpy's types that may hold real numbers."""


@dataclass(frozen=True, eq=False)
class Arrays:
    """Arms and their mean rewards; both are read-only.

    Attributes:
        arms: (M, d), (T, K, d) or (N, T, K, d), see `SHAPES`.
        rewards: (M,) or (N, M), with a row for each agent; (T, K); (N, T, K).
    """

    arms: FloatArray
    rewards: FloatArray

    @classmethod
    def of(cls, arms: Any, rewards: Any) -> Arrays:
        """Whatever numpy reads as arrays of these shapes.

        Raises:
            ValueError: of another shape, too few arms, or no finite numbers; the text says what is wrong.
        """
        rows, other = (getattr(given, "index", None) for given in (arms, rewards))
        if not (callable(rows) or callable(other) or rows is None or other is None or other.equals(rows)):
            raise ValueError(
                "rewards has another index than arms; give rewards.loc[arms.index], or rewards.to_numpy()."
            )
        features, means = arms_of(arms), _finite("rewards", rewards)
        shape = features.shape[:-1]
        if means.shape != shape and not (len(shape) == 1 and means.ndim == 2 and means.shape[1:] == shape):
            also = f", or (N, {shape[0]}) with a row for each of N agents" if len(shape) == 1 else ""
            turned = "; give rewards.T" if means.ndim == 2 and means.shape[:1] == shape else ""
            raise ValueError(
                f"rewards has shape {means.shape}, but arms of shape {features.shape} need {shape}{also}{turned}."
            )
        return cls(features, means)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arrays) and self.content == other.content

    def __hash__(self) -> int:
        return int(self.content[:15], 16)

    @property
    def agents(self) -> int | None:
        """How many agents have rewards, or turns, of their own; None where all have the same."""
        return len(self.rewards) if self.arms.ndim == 4 or self.rewards.ndim == self.arms.ndim == 2 else None

    @cached_property
    def content(self) -> str:
        """SHA-256 of shapes and values."""
        digest = hashlib.sha256()
        for array in (self.arms, self.rewards):
            digest.update(repr(array.shape).encode())
            digest.update(array.astype("<f8", copy=False).tobytes())
        return digest.hexdigest()

    def packed(self) -> bytes:
        """The content of an .npz file with ``arms`` and ``rewards``; the same arrays give an identical file."""
        packed = io.BytesIO()
        np.savez_compressed(packed, arms=self.arms, rewards=self.rewards)
        return packed.getvalue()


def arms_of(given: Any) -> FloatArray:
    """Arms of one of the `SHAPES`.

    Raises:
        ValueError: no finite numbers, or of another shape.
    """
    arms = _finite("arms", given)
    if arms.ndim not in SHAPES:
        own = f" (a single feature: arms[:, None]; no features: np.eye({arms.size}))"
        column = own if arms.ndim == 1 else ""
        raise ValueError(
            f"arms has shape {arms.shape}, but must be (M, d), one row of d features for each of M arms{column}, or "
            "(T, K, d) or (N, T, K, d) for logged turns of K arms."
        )
    if 0 in arms.shape:
        raise ValueError(f"arms has shape {arms.shape}, which holds no number; it must be {SHAPES[arms.ndim]}.")
    if arms.shape[-2] < 2:
        raise ValueError(f"arms has shape {arms.shape}, a single arm at every turn; at least 2 are needed to choose.")
    return arms


def _finite(name: str, given: Any) -> FloatArray:
    """An array of finite numbers.

    Raises:
        ValueError: it is something else.
    """
    try:
        raw = np.asarray(given)
        if raw.dtype.kind not in _NUMBERS:
            raise TypeError
        found = raw.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be an array of numbers with rows of one length{_culprit(name, given)}."
        ) from None
    if np.ma.isMaskedArray(given):
        found[np.ma.getmaskarray(given)] = np.nan
    wrong = np.argwhere(~np.isfinite(found))
    if len(wrong):
        place = ", ".join(map(str, wrong[0]))
        raise ValueError(f"{name}[{place}] is {found[tuple(wrong[0])]}; {name} must be finite numbers.")
    return read_only(found)


def _culprit(name: str, given: Any) -> str:
    """What is not a number in it, as its user names it."""
    for column in getattr(given, "columns", ()):  # a data frame
        try:
            np.asarray(given[column], dtype=np.float64)
        except (TypeError, ValueError):
            dummies = "turn it into columns of 0 and 1, as pandas.get_dummies does"
            return f", but its column {column!r} holds no numbers; leave it out, or {dummies}"
    try:
        places = [(place, value) for place, value in np.ndenumerate(np.array(given, dtype=object))]
    except ValueError:
        places = []
    for place, value in places:
        if isinstance(value, str):
            return f", but {name}[{', '.join(map(str, place))}] is {value!r}"
    return f", not this {type(given).__name__}"


def file_of(content: str) -> str:
    """The name of the file that keeps arrays, beside the scenario that names their content."""
    return f"arrays-{content[:16]}.npz"


def read_arrays(folder: Path, content: str) -> Arrays:
    """The arrays with this digest, from their file in a folder; cached until it changes.

    Raises:
        DataError: there is no such file, or it holds other arrays.
    """
    file = folder / file_of(content)
    try:
        return _read(file_version(file), content)
    except OSError:
        raise DataError(
            "this file has the arrays of the problem, and is not there: copy it from the directory of the run that "
            "the scenario was taken from.",
            file,
        ) from None


@lru_cache(maxsize=4)
def _read(version: tuple[Path, int, int], content: str) -> Arrays:
    file = version[0]
    try:
        with np.load(file, allow_pickle=False) as stored:
            found = Arrays.of(stored["arms"], stored["rewards"])
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"the arrays cannot be read: {error}", file) from None
    if found.content != content:
        raise DataError(f"it holds other arrays than those with the digest problem.content(={content[:16]}...).", file)
    return found
