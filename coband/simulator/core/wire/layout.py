"""How the payload fields of a run's messages are written: which numbers of a field go, and in how many bits."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.message import EXACT, Message, size_of, unary_bits
from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.core.wire.config import MessagesConfig
from coband.simulator.core.wire.encodings import BaseEncoding, damaged, index_bits, semidefinite

Limits = Mapping[str, int | None]
"""How many agents, arms, turns and pulls there are at most; None where nobody knows."""


@dataclass(frozen=True, slots=True)
class Field:
    """What a payload field is, and how it is written.

    Attributes:
        matrix: its matrices are symmetric.
        encoding: of its real numbers; None: they are exact.
        width: bits of each of its numbers, where they are exact.
        unary: its whole numbers are in a unary code.
    """

    name: str
    matrix: bool
    encoding: BaseEncoding | None
    width: int
    unary: bool = False


class Layout:
    """The fields of all messages.

    Args:
        config: what is done to messages.
        limits: for the width of indices.
        scalar_bits: of a number that is sent as it is.
    """

    def __init__(self, config: MessagesConfig, limits: Limits, scalar_bits: int) -> None:
        self._config, self._limits, self._scalar_bits = config, limits, scalar_bits
        self._packed = config.counting == "packed"
        self._fields: dict[type[Message], tuple[Field, ...]] = {}

    def of(self, kind: type[Message]) -> tuple[Field, ...]:
        """The payload fields of a message, in order."""
        if kind not in self._fields:
            self._fields[kind] = tuple(self._field(kind, name) for name in kind.payload_fields())
        return self._fields[kind]

    def _field(self, kind: type[Message], name: str) -> Field:
        declared, encoding = kind.declared(name), self._config.encoding.of(kind, name)
        limit, width = self._limits.get(declared["of"]), self._scalar_bits
        if self._packed and declared["kind"] in EXACT:
            whole = {"flag": 2, "index": limit, "count": None if limit is None else limit + 1}[declared["kind"]]
            width = width if whole is None else index_bits(whole)
        lossy = None if encoding.exact else encoding
        return Field(name, declared["symmetric"], lossy, width, declared["code"] == "unary")

    def kinds(self, kind: type[Message], names: Container[str]) -> dict[str, str]:
        """What the encodings of some fields are called."""
        fields = (field for field in self.of(kind) if field.name in names)
        return {field.name: field.encoding.kind for field in fields}  # type: ignore[union-attr]

    def exact_bits(self, field: Field, value: Any) -> int:
        """Bits of a value that is sent as it is."""
        if isinstance(value, tuple):
            return sum(self.exact_bits(field, item) for item in value)
        if field.unary:
            return unary_bits(value)
        shape = getattr(value, "shape", ())
        return field.width * (self.count(field, shape) if shape else size_of(value))

    def halves(self, field: Field, shape: tuple[int, ...]) -> bool:
        """Whether only one of two symmetric entries is sent."""
        return self._packed and field.matrix and len(shape) == 2

    def count(self, field: Field, shape: tuple[int, ...]) -> int:
        """Numbers that are sent of an array."""
        return shape[0] * (shape[0] + 1) // 2 if self.halves(field, shape) else int(np.prod(shape))

    def numbers(self, field: Field, entries: FloatArray) -> FloatArray:
        """The numbers that are sent of an array: all, or the upper triangle row by row."""
        return entries[np.triu_indices(len(entries))] if self.halves(field, entries.shape) else entries.ravel()

    def entries(self, field: Field, numbers: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """The array of this shape whose numbers these are."""
        if not self.halves(field, shape):
            return numbers.reshape(shape)
        whole = np.zeros(shape)
        whole[np.triu_indices(len(whole))] = numbers
        return whole + np.triu(whole, 1).T

    def repaired(self, field: Field, entries: FloatArray) -> FloatArray:
        """Entries as a receiver takes them: of a symmetric matrix, positive semidefinite ones.

        Raises:
            UnsupportedScenario: they are not, and are to be refused.
        """
        if not field.matrix or entries.ndim not in (1, 2):
            return entries
        if self._config.repair == "refuse" and (least := damaged(entries)) < 0.0:
            raise UnsupportedScenario(
                f"messages.repair: a {field.name} arrives with the eigenvalue {least:.3g} and is refused; set repair: "
                "shift, or choose less noise, more bits, or more pulls for each message"
            )
        return semidefinite(entries)
