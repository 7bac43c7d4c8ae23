"""Messages as bytes where a scenario has a wire: the payload takes the bits that the ledger counts.

A message is (name of its class, header fields, forms, link, payload). The payload is the numbers of all fields one
after the other, each in as many bits as it counts, filled up to whole bytes; all else is header. ``forms`` has for each
payload field whether it is a tuple, and the form of each value. The link is there where fields are sent as differences:
(recipient, number of the message among those of its sender, numbers of the messages from which the differences count).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from coband import Address, FloatArray, Message, Multicast, UnsupportedScenario
from coband.extending import Field, Layout, gram, packing, unary_bits
from coband.extensions.live.codec import DTYPES, LARGEST_RANK, Codec, WireError, no_extension

NOTHING, UNARY = "n", "u"
EXACT_BITS = 64
"""Bits of a number that is sent as it is."""
GRAMS: dict[str, type[gram.Gram]] = {"G": gram.Gram, "D": gram.Downdate}
ARRAYS = {kind + order for kind in DTYPES for order in "CF"}
LARGEST = 1 << 24
"""Numbers of the largest array: an encoding may leave most of them out, so that few bytes could claim many."""


class Form(NamedTuple):
    """The form of one value.

    Attributes:
        code: n for None; u for whole numbers in a unary code; f, i or b for a number; these with C or F, the order in
            memory, for an array; G or D for a sum of squares or what is left of one.
        shape: of an array or a matrix; of a unary code, how many numbers and how many bits.
    """

    code: str
    shape: tuple[int, ...] = ()

    @classmethod
    def of(cls, value: Any, unary: bool = False) -> Form:
        """The form of a value that messages may have."""
        if value is None:
            return cls(NOTHING)
        if unary:
            return cls(UNARY, (len(value), unary_bits(value)))
        if isinstance(value, gram.Gram):
            return cls("D" if value.sign < 0 else "G", value.shape)
        kind = np.asarray(value).dtype.kind.replace("u", "i")
        if not isinstance(value, np.ndarray):
            return cls(kind)
        flipped = value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous
        return cls(kind + "CF"[flipped], value.shape)

    @classmethod
    def read(cls, given: Any) -> Form:
        """A form that another process has sent.

        Raises:
            WireError: it is none.
        """
        if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str) and isinstance(given[1], tuple):
            form = cls(*given)
            sizes = all(isinstance(size, int) and 0 <= size <= LARGEST for size in form.shape)
            if sizes and len(form.shape) <= LARGEST_RANK and math.prod(form.shape) <= LARGEST and form._fits:
                return form
        raise WireError(f"a value of unknown form {given!r:.60}")

    @property
    def _fits(self) -> bool:
        """Whether the shape is one of the code."""
        if self.code in GRAMS:
            return len(self.shape) == 2 and self.shape[0] == self.shape[1]
        if self.code == UNARY:
            return len(self.shape) == 2
        return self.code in ARRAYS or ((self.code == NOTHING or self.code in DTYPES) and not self.shape)

    def made(self, entries: Any) -> Any:
        """The value that has these entries: an array of the shape."""
        if self.code in GRAMS:
            return GRAMS[self.code](np.empty((0, len(entries))), entries)
        if self.code in DTYPES:
            return entries.item()
        entries.flags.writeable = False
        return entries

    def exactly(self, entries: FloatArray) -> Any:
        """The same of entries that are as they were sent, in the same order in memory."""
        ordered = np.asfortranarray(entries) if self.code.endswith("F") else entries
        return self.made(ordered.astype(DTYPES[self.code[0]], copy=False) if self.code not in GRAMS else ordered)


NEVER = -1
"""The number of no message."""
Widths = list[tuple[int, int]]


@dataclass(frozen=True)
class Sent:
    """A message whose fields are differences.

    Attributes:
        link: its sender, recipient and class.
        number: of the message among those of its sender.
        references: from which messages the differences count.
    """

    link: tuple[Any, ...]
    number: int
    references: Iterator[int]


class PayloadCodec(Codec):
    """Writes and reads messages whose fields are laid out in bits.

    Args:
        kinds, dimension: as of `Codec`.
        layout: of the run.
        forgets: messages come once and in order, so that what is older than a difference is of no use any more.
    """

    extension = staticmethod(no_extension)

    def __init__(self, kinds: Iterable[type[Message]], dimension: int, layout: Layout, forgets: bool) -> None:
        super().__init__(kinds, dimension)
        self._layout, self._forgets = layout, forgets
        self._known: dict[tuple[Any, ...], dict[int, FloatArray]] = {}

    def _widths(self, field: Field, form: Form) -> Widths:
        """(how many codes, bits of each) of every part of one value."""
        if form.code == NOTHING:
            return []
        if form.code == UNARY:
            return [(form.shape[1], 1)]
        count = self._layout.count(field, form.shape)
        return [(count, field.width)] if field.encoding is None else list(field.encoding.widths(count))

    # --- writing

    def _parts_of(self, message: Message) -> list[Any]:
        kind, passage = type(message), message.passage
        forms, parts, widths, references = [], list[packing.Codes](), Widths(), list[int]()
        for field in self._layout.of(kind):
            value = getattr(message, field.name)
            items = value if isinstance(value, tuple) else (value,)
            own = [Form.of(item, field.unary) for item in items]
            forms.append([isinstance(value, tuple), *own])
            coded = None if passage is None else passage.coded.get(field.name)
            for place, (item, form) in enumerate(zip(items, own, strict=True)):
                parts += self._exact(kind, field, item) if coded is None else coded[place].parts
                widths += self._widths(field, form)
            if field.encoding is not None and field.encoding.acknowledged:
                references += [one.reference for one in coded or ()]
        link = None
        if passage is not None and references:
            to = passage.recipient
            link = ([to.excluding] if isinstance(to, Multicast) else to, passage.number, references)
        return [[getattr(message, name) for name in _headers(kind)], forms, link, packing.packed(parts, widths)]

    def _exact(self, kind: type[Message], field: Field, value: Any) -> list[packing.Codes]:
        """The codes of what is sent as it is."""
        if value is None:
            return []
        if field.unary:
            return [packing.unary(value)]
        array = np.asarray(value)
        if array.dtype.kind == "f":
            numbers = self._layout.numbers(field, array.astype(np.float64, copy=False))
            return [np.ascontiguousarray(numbers).view(np.uint64)]
        codes = array.astype(np.int64).ravel().view(np.uint64)
        if field.width < EXACT_BITS and (codes >> np.uint64(field.width)).any():
            raise UnsupportedScenario(
                f"{kind.__name__}.{field.name} is {value}, for which {field.width} bits are too few; set "
                "messages.counting: paper, which sends it in 64"
            )
        return [codes]

    # --- reading

    def _values_of(self, kind: type[Message], parts: Sequence[Any], source: Address) -> tuple[dict[str, Any], Any]:
        laid = self._layout.of(kind)
        headers, forms, link, raw = _checked(kind, parts, len(laid))
        widths = [[self._widths(field, form) for form in own] for field, (_, own) in zip(laid, forms, strict=True)]
        try:
            codes = iter(packing.unpacked(raw, [width for own in widths for each in own for width in each]))
        except ValueError as error:
            raise WireError(f"a {kind.__name__} with {error}") from None
        recipient, number, references = (None, 0, ()) if link is None else link
        sent = Sent((source, recipient, kind), number, iter(references))
        values: dict[str, Any] = dict(zip(_headers(kind), headers, strict=True))
        for field, (several, own), ours in zip(laid, forms, widths, strict=True):
            taken = [[next(codes) for _ in each] for each in ours]
            found = tuple(
                self._read(field, form, each, sent, place)
                for place, (form, each) in enumerate(zip(own, taken, strict=True))
            )
            values[field.name] = found if several else found[0]
        bits = (sum(count * width for each in own for count, width in each) for own in widths)
        return values, {"field_bits": tuple(bits)}

    def _read(self, field: Field, form: Form, codes: Sequence[packing.Codes], sent: Sent, place: int) -> Any:
        """One value of its codes."""
        if form.code == NOTHING:
            return None
        if field.unary != (form.code == UNARY):
            raise WireError(f"a {field.name} of form {form.code}")
        if field.unary:
            try:
                return form.made(packing.from_unary(codes[0], form.shape[0]))
            except ValueError as error:
                raise WireError(f"a {field.name} with {error}") from None
        if field.encoding is None:
            numbers: Any = codes[0].view(DTYPES["i" if form.code[0] in "ib" else "f"])
            return form.exactly(self._layout.entries(field, numbers, form.shape))
        decoded = field.encoding.decode(codes, self._layout.count(field, form.shape))
        if field.encoding.acknowledged:
            decoded = self._from(sent, decoded, (*sent.link, field.name, place))
        return form.made(self._layout.repaired(field, self._layout.entries(field, decoded, form.shape)))

    def _from(self, sent: Sent, difference: FloatArray, key: tuple[Any, ...]) -> FloatArray:
        """The numbers that differ so from those of an earlier message."""
        known, reference = self._known.setdefault(key, {}), next(sent.references, NEVER)
        before = np.zeros(len(difference)) if reference == 0 else known.get(reference, np.empty(0))
        if not sent.number or len(before) != len(difference):
            raise WireError(f"a difference to message {reference}, which has not come on its link")
        numbers = known[sent.number] = difference + before
        for old in [other for other in known if self._forgets and other < reference]:
            del known[old]
        return numbers


def _headers(kind: type[Message]) -> list[str]:
    return [item.name for item in fields(kind) if not item.metadata.get("payload")]


def _checked(
    kind: type[Message], parts: Sequence[Any], count: int
) -> tuple[Any, list[tuple[bool, list[Form]]], Any, bytes]:
    """Header fields, (whether it is a tuple, forms) of each payload field, link and payload, if they are such."""
    if len(parts) != 4 or not isinstance(parts[3], bytes):
        raise WireError(f"a {kind.__name__} without header and payload")
    headers, forms, link, raw = parts
    if not isinstance(headers, tuple) or len(headers) != len(_headers(kind)):
        raise WireError(f"a {kind.__name__} with other header fields")
    if not isinstance(forms, tuple) or len(forms) != count or not all(isinstance(form, tuple) for form in forms):
        raise WireError(f"a {kind.__name__} with other payload fields")
    if any(not form or not isinstance(form[0], bool) or (not form[0] and len(form) != 2) for form in forms):
        raise WireError(f"a {kind.__name__} with payload fields of unknown form")
    if link is not None and not _is_link(link):
        raise WireError(f"a {kind.__name__} on no link")
    return headers, [(several, [Form.read(one) for one in own]) for several, *own in forms], link, raw


def _is_link(link: Any) -> bool:
    if not isinstance(link, tuple) or len(link) != 3 or not isinstance(link[2], tuple):
        return False
    recipient, number, references = link
    whole = recipient if isinstance(recipient, tuple) else (recipient,)
    return all(type(one) in (int, NoneType) for one in whole) and all(type(one) is int for one in (number, *references))
