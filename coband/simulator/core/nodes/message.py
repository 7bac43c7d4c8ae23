"""Messages, whose size is computed from what they carry.

A message is a frozen dataclass. Fields marked with :func:`payload` are the real numbers that a link has to carry and
that the ledger counts; everything else (versions, positions, counts of pulls) is header.

Mistakes of those who write algorithms are errors here: they say where the code is wrong, and what to write instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import partial
from inspect import signature
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar, Literal, cast, dataclass_transform

import numpy as np

from coband.simulator.arrays import IntArray
from coband.simulator.plugins.promises import in_words as in_words
from coband.simulator.plugins.promises import written as written

Meaning = Literal["gram", "moment", "points", "rewards", "weights", "number", "index", "count", "flag"]
"""What a payload field holds."""
HELD: Mapping[Meaning, str] = {
    "gram": "sums of squares, or their inverses",
    "moment": "sums that are linear in rewards",
    "points": "arms and contexts",
    "rewards": "rewards, or their means",
    "weights": "parameters of models",
    "number": "other real numbers",
    "index": "which of several",
    "count": "how many",
    "flag": "whether",
}
"""The same in words."""
EXACT = frozenset(("index", "count", "flag"))
"""The meanings whose values are exact in whatever way they are sent."""
Pulls = Literal["new", "all", "again"]
"""Which pulls a sum is of: those that are in no message of the field before; all so far, in one form for the whole run;
all so far, in a form that changes from message to message."""


def payload(
    *shape: str,
    kind: Meaning = "number",
    symmetric: bool = False,
    of: str = "",
    adds: Literal["", "news", "all", "newest", "server"] = "",
    bound: str = "",
    pulls: Pulls | None = None,
    code: Literal["", "unary"] = "",
    noised: bool = False,
) -> Any:
    """Mark a dataclass field as payload: its scalars are counted.

    Args:
        shape: of an array, a letter for each axis: one letter stands for one size in a message, ``d`` for the arm
            dimension. What comes from another process is held to it; without, any shape is taken.
        kind: what it holds, so that encodings, noise and adversaries know what they may do to it.
        symmetric: its matrices are; so m (m + 1) / 2 of the m^2 entries say everything.
        of: of an index or a count, what there is at most: agents, arms, turns (of one agent) or pulls (of all).
        adds: of an upload, that the server wants the sum over agents alone, so that a defence may take its place: of
            what is new since the agent's upload before (``news``), or of all that it has, once in each round (``all``),
            or of all that it has, where the server keeps each agent's newest (``newest``); ``server``: of what is new,
            in a basis that changes, so that the server asks its `defence` by itself.
        bound: of a sum over pulls, the largest Euclidean norm of what one pull adds to it, a formula of the largest
            norm of ``points`` and the largest absolute value of ``rewards``; empty where there is none, so that no
            noise can hide a pull in it.
        pulls: which pulls a sum with a bound is of; None: new ones where it adds news, else all again.
        code: of counts with a sign, unary: they take `unary_bits`, however the scenario counts.
        noised: its node has put noise on it (`Algorithm.private`), so that it tells nothing more of single pulls.
    """
    if bound and pulls is None:
        pulls = "new" if adds == "news" else "again"
    about: dict[str, Any] = {"shape": shape, "kind": kind, "symmetric": symmetric, "of": of, "adds": adds}
    about |= {"bound": bound, "pulls": pulls, "code": code, "noised": noised}
    return field(metadata={"payload": True, **about})


def unary_bits(numbers: IntArray) -> int:
    """Bits of whole numbers in a unary code: |m| ones, a zero, and a sign unless m = 0."""
    return int(np.abs(numbers).sum()) + len(numbers) + int(np.count_nonzero(numbers))


class _Sizers(dict[type, Callable[[Any], int]]):
    """What counts the scalars of a payload value, by its type."""

    def __missing__(self, kind: type) -> Callable[[Any], int]:
        found = self[kind] = attrgetter("size") if issubclass(kind, np.ndarray) else _counted
        return found


_SIZERS = _Sizers({int: lambda value: 1, float: lambda value: 1, type(None): lambda value: 0})


def size_of(value: object) -> int:
    """Count the scalars in a payload value: the sum of array sizes, 1 for a number, 0 for None.

    An array is whatever has a ``shape``, so that a matrix may be kept in fewer numbers than it has entries.
    """
    return _SIZERS[type(value)](value)


def _counted(value: object) -> int:
    """`size_of` of a value whose type alone does not say it."""
    if isinstance(shape := getattr(value, "shape", None), tuple) and shape:
        return math.prod(shape)
    if isinstance(value, (int, float, np.number)):
        return 1
    if isinstance(value, (tuple, list)):
        return sum(map(size_of, value))
    if is_dataclass(value):
        return sum(size_of(getattr(value, item.name)) for item in fields(value))
    raise TypeError(f"a payload of type {type(value).__name__} has no size in scalars; use arrays or numbers")


@dataclass(slots=True)
class Passage:
    """What the wire (``core.wire``) knows of a message that it has sent in place of another one.

    Attributes:
        original: as its node sent it.
        done: what was done to it, for the trace.
        number: among the messages of its sender, from 1.
        recipient: to whom it goes.
        unheard: receivers of whom its sender does not know that they have it.
        coded: of encoded fields, the codes that go on the link (`core.wire.senders.Encoded`), one for each matrix.
        lost: whether it was given up.
        withheld: it is lost behind its node.
    """

    original: Message
    done: Mapping[str, Any]
    number: int
    recipient: Any
    unheard: int
    coded: Mapping[str, Sequence[Any]]
    lost: bool = False
    withheld: bool = False


def _quicken(kind: type[Message]) -> None:
    """Replace the ``__init__`` that ``dataclass`` has made, which sets fields of a frozen class one by one.

    The new one takes the same and does the same in half of the time. Classes whose fields are more than names with
    defaults keep theirs.
    """
    given = [item for item in fields(kind) if item.init]
    plain = all(item.kw_only and item.default_factory is MISSING for item in given) and "__slots__" not in vars(kind)
    if not plain or "__init__" not in vars(kind) or hasattr(kind, "__post_init__"):
        return
    if list(signature(kind.__init__).parameters) != ["self", *(item.name for item in given)]:
        return  # written by hand, or with fields that are not kept
    defaults = {item.name: item.default for item in given if item.default is not MISSING}
    names = ", ".join(f"{item.name}=defaults[{item.name!r}]" if item.name in defaults else item.name for item in given)
    sets = "\n".join(f"    kept[{item.name!r}] = {item.name}" for item in given)
    made: dict[str, Any] = {"defaults": defaults}
    exec(f"def __init__(self, *, {names}):\n    kept = self.__dict__\n{sets}", made)
    kind.__init__ = made["__init__"]  # type: ignore[method-assign]


class _Kept:
    """Something about the payload that is computed at its first use, and then kept in the message.

    ``functools.cached_property`` takes a lock for that before Python 3.12, which costs more than the count itself.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, message: Message | None, owner: type[Message]) -> Any:
        if message is None:
            return self
        kept = message.__dict__
        names = owner.__dict__.get("_counted")
        if names is None:  # the first of its class
            refuse_uncounted(message)
            names = owner._counted = message.payload_fields()
        try:
            kept["sizes"] = sizes = tuple([_SIZERS[type(value := getattr(message, name))](value) for name in names])
        except TypeError as error:
            raise mistake(owner, f"{owner.__name__}: {error}") from None
        kept["scalars"] = sum(sizes)
        return kept[self._name]


def _number(letter: str, message: Message) -> int:
    """What a letter of shapes stands for in a message; 0 where the field is left out."""
    kind = type(message)
    name = next(name for name in kind.payload_fields() if letter in kind.declared(name)["shape"])
    value = getattr(message, name)
    return 0 if value is None else int(value.shape[kind.declared(name)["shape"].index(letter)])


@dataclass_transform(eq_default=False, kw_only_default=True, frozen_default=True, field_specifiers=(payload, field))
@dataclass(frozen=True, kw_only=True, eq=False)
class Message:
    """Base of all messages. Classes that are derived from it are such dataclasses without saying so.

    Traces and ledgers name a message by its ``kind``: the name of its class, unless the class sets
    ``kind: ClassVar[str] = "sums"``.

    Header fields, which cost nothing: ``round`` (communication round, -1 if unknown), ``version`` (of the model it is
    about, -1 if none), ``pulls`` (how many pulls' statistics an upload brings that the server does not have yet),
    ``known`` (how many pulls' statistics the model in it has, of all agents; -1 if it has none or nobody counts them).
    Three are written by conversations (``core.conversations``) when they send it: ``talk`` (its number,
    0 if nobody cares), ``answers`` (number of the question that it answers or continues), ``asks`` (1: for an answer;
    2: its sender waits for a message to all).

    A letter of the shapes of a class is a property of its messages if the class says what it is the number of:
    ``class Points(Message, n="new points")``.
    """

    kind: ClassVar[str] = "message"
    _payload_fields: ClassVar[tuple[str, ...]] = ()
    _counted: ClassVar[tuple[str, ...]] = ()
    round: int = -1
    version: int = -1
    pulls: int = 0
    known: int = -1
    talk: int = field(default=0, init=False)
    answers: int = field(default=0, init=False)
    asks: int = field(default=0, init=False)

    def __init_subclass__(cls, **numbers: str) -> None:
        super().__init_subclass__()
        if cls.kind == Message.kind:
            cls.kind = cls.__name__
        dataclass(frozen=True, kw_only=True, eq=False)(cls)
        for letter, what in numbers.items():
            setattr(cls, letter, property(partial(_number, letter), doc=what))

    @classmethod
    def payload_fields(cls) -> tuple[str, ...]:
        """Names of the fields that are payload, in order of declaration."""
        if "_payload_fields" not in cls.__dict__:
            _quicken(cls)
            cls._payload_fields = tuple(item.name for item in fields(cls) if item.metadata.get("payload"))
        return cls._payload_fields

    @classmethod
    def meaning(cls, name: str) -> Meaning:
        """What a payload field holds."""
        return cast(Meaning, cls.declared(name)["kind"])

    @classmethod
    def declared(cls, name: str) -> Mapping[str, Any]:
        """What `payload` was told of a field."""
        return cls.__dataclass_fields__[name].metadata

    scalars: ClassVar[int] = cast(int, _Kept("scalars"))
    """Payload size in scalars: computed from the payload, never typed in by hand."""
    sizes: ClassVar[tuple[int, ...]] = cast(tuple[int, ...], _Kept("sizes"))
    """The same for each payload field."""
    field_bits: ClassVar[tuple[int, ...] | None] = None
    """Bits of each payload field, where the wire (``core.wire``) has counted them; None: all scalars cost the same."""
    passage: ClassVar[Passage | None] = None
    """What the wire has done to it; None: nothing."""
    sent_as: ClassVar[Mapping[Any, Message]] = MappingProxyType({})
    """The message that the wire has sent in the place of this one, by recipient."""

    @property
    def original(self) -> Message:
        """The message as its node sent it."""
        return self if self.passage is None else self.passage.original


class NodeMistake(TypeError):
    """A node or a message is not what its interface asks for; the text says what it is, and what to write.

    Attributes:
        placed: whether the text begins with the place in the code.
    """

    placed = False


def mistake(code: Any, text: str) -> NodeMistake:
    """A mistake in a class or function, whose place is said first."""
    found = NodeMistake((place := written(code)) + text)
    found.placed = bool(place)
    return found


def returned(node: object, method: str, value: object, wanted: str) -> NodeMistake:
    """The mistake of a node whose method has returned something else than what is wanted."""
    kind = type(node)
    return mistake(getattr(kind, method, kind), f"{kind.__name__}.{method} returned {in_words(value)}; {wanted}")


def refuse_choice(node: object, arm: object, count: int) -> None:
    """Say what ``choose`` is to return, where it has not.

    Raises:
        NodeMistake: the arm is not one of 0 .. count - 1.
    """
    if isinstance(arm, bool) or not (isinstance(arm, (int, np.integer)) and 0 <= arm < count):
        raise returned(node, "choose", arm, f"return the number of an arm, 0 .. {count - 1}") from None


LABELS = (int, str, np.integer, np.bool_, type(None))
"""What a header field may hold several of; real numbers may only stand alone."""


def refuse_uncounted(message: Any) -> None:
    """Say so where a field that is not a payload holds more than one value, which nobody would count.

    Raises:
        NodeMistake: one does.
    """
    kind = type(message)
    for item in fields(kind):
        value = getattr(message, item.name)
        labels = value if isinstance(value, tuple) else (value,)
        header = isinstance(value, (float, np.floating)) or all(isinstance(label, LABELS) for label in labels)
        if header or item.metadata.get("payload"):
            continue
        what = "an array" if isinstance(value, np.ndarray) else in_words(value)
        declared = item.type if isinstance(item.type, str) else getattr(item.type, "__name__", str(item.type))
        raise mistake(
            kind,
            f"{kind.__name__}.{item.name} is {what} and no payload, so that nobody would count it; write "
            f"`{item.name}: {declared} = payload()`",
        )
