"""Ratings of items by users in the files in which MovieLens and Yelp publish them, read line by line.

Each line is reduced to three small numbers (user, item, rating), and each user or item name is stored once, so a file
of many gigabytes of review text needs a few hundred megabytes of memory.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from coband.simulator.problems.datasets import DataError, PublicDataset, published, read_lines

HIGHEST = 5.0

Triple = tuple[str, str, float]


@dataclass(frozen=True, kw_only=True)
class RatingDataset(PublicDataset):
    """A public dataset of ratings: a file with one rating per line."""

    @property
    def columns(self) -> str:
        return "user, item, rating"


RATINGS: Mapping[str, RatingDataset] = published(RatingDataset, "ratings")


@dataclass(frozen=True)
class Ratings:
    """All ratings of a file, in the order of the file; users and items are numbered by first appearance.

    Attributes:
        users: user number of each rating, shape (n,).
        items: item number of each rating, shape (n,).
        values: the ratings, shape (n,).
        user_names: name of each user, by number.
    """

    users: npt.NDArray[np.int32]
    items: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    user_names: tuple[str, ...]


def read(source: RatingDataset, file: Path, most: int | None = None) -> Ratings:
    """Read MovieLens' `ratings.csv` (with its header) or `u.data` (tabs), or Yelp's reviews (JSON lines).

    Args:
        most: only so many ratings; None for all.

    Raises:
        DataError: the file cannot be read, is empty, or has a malformed line; the message gives the line number.
    """
    users: dict[str, int] = {}
    items: dict[str, int] = {}
    user_numbers, item_numbers, values = array("i"), array("i"), array("f")
    with closing(read_lines(file)) as lines:  # also after a mistake, or where only the first ratings are read
        for user, item, rating in islice(_triples(source, file, lines), most):
            user_numbers.append(users.setdefault(user, len(users)))
            item_numbers.append(items.setdefault(item, len(items)))
            values.append(rating)
    if not values:
        raise DataError("there are no ratings in this file.", file)
    return Ratings(
        np.frombuffer(user_numbers, np.int32),
        np.frombuffer(item_numbers, np.int32),
        np.frombuffer(values, np.float32),
        tuple(users),
    )


def _triples(source: RatingDataset, file: Path, lines: Iterable[str]) -> Iterator[Triple]:
    """Yield the ratings of a file's lines one by one, skipping blank lines."""
    numbered: Iterator[tuple[int, str]] = (
        (number, line) for number, line in enumerate(lines, start=1) if not line.isspace()
    )
    first = next(numbered, None)
    if first is None:
        return
    parse: Callable[[str], Triple]
    if source.name == "yelp":
        parse, expected = _review, 'a JSON object with "user_id", "business_id" and "stars"'
        numbered = chain([first], numbered)
    elif "\t" in first[1]:
        parse, expected = partial(_separated, separator="\t"), "user, item, rating and time, separated by tabs"
        numbered = chain([first], numbered)
    else:
        _check_header(file, *first)
        parse, expected = partial(_separated, separator=","), "userId,movieId,rating,timestamp"
    for number, line in numbered:
        try:
            triple = parse(line)
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{_shown(line)} is not a rating: expected {expected}.", file, number) from error
        if not 0.0 < triple[2] <= HIGHEST:
            raise DataError(f"rating {triple[2]:g} must be > 0 and <= {HIGHEST:g}.", file, number)
        yield triple


def _check_header(file: Path, number: int, line: str) -> None:
    names = [name.strip().lower() for name in line.split(",")]
    if names[:3] != ["userid", "movieid", "rating"]:
        raise DataError(
            f"{_shown(line)} is not a file of MovieLens: expected the header userId,movieId,rating,timestamp, or lines "
            "of user, item, rating and time, separated by tabs.",
            file,
            number,
        )


def _separated(line: str, separator: str) -> Triple:
    user, item, rating, _ = line.split(separator)
    return user, item, float(rating)


def _review(line: str) -> Triple:
    review = json.loads(line)
    user, item, stars = review["user_id"], review["business_id"], review["stars"]
    if not (isinstance(user, str) and isinstance(item, str)) or isinstance(stars, bool):
        raise TypeError
    return user, item, float(stars)


def _shown(line: str) -> str:
    """The line in quotes, cut after 60 characters."""
    line = line.strip()
    return repr(line if len(line) <= 60 else line[:60] + "...")
