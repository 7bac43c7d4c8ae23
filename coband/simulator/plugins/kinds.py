"""Open lists: what a scenario can name, by kind; coband's own, those of installed packages, and those of a notebook.

A list such as the topologies is one `Kinds`. Its members come from three places, in this order: modules of coband
(`Kinds.own`, or entry points), entry points ``coband.<list>`` of installed packages, and `Kinds.register` at run time.
A field of a scenario looks a kind up when it is validated, so that a class registered later counts at once.

The docstrings below the fields of a class say what each field is; they are read from the source when somebody asks.
Strict validation of JSON, which scenarios and plugins share, is here too.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from coband.simulator.plugins.entry_points import (
    OWN_DISTRIBUTION,
    PluginError,
    distribution,
    exception_told,
    installed,
    is_subclass,
    kind_of,
    loaded,
)
from coband.simulator.plugins.promises import hold_to
from coband.simulator.scenario_errors import RAISED

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from pydantic import TypeAdapter
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema, ErrorDetails


def describe_properties(cls: type, properties: MutableMapping[str, Any], names: Mapping[str, str]) -> None:
    """Give the properties of a JSON Schema that have no description the docstrings below the class's fields,
    its own or those of the nearest base.

    Args:
        cls: the class that the schema is of.
        properties: by the names that scenarios use; changed in place.
        names: field -> that name.
    """
    for base in cls.__mro__:
        for field, text in _docstrings(base.__module__).get(base.__name__, {}).items():
            if names.get(field) in properties:
                properties[names[field]].setdefault("description", text)


@cache
def _docstrings(module: str) -> Mapping[str, Mapping[str, str]]:
    """The docstrings below the fields of a module's classes, by class and field; empty if there is no source."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError):
        return {}
    return {
        one.name: {
            field.target.id: inspect.cleandoc(text.value.value)
            for field, text in pairwise(one.body)
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
            if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
        }
        for one in tree.body
        if isinstance(one, ast.ClassDef)
    }


T = TypeVar("T")
Words = Callable[[], Sequence[str]]
LISTS: dict[str, Kinds[Any]] = {}
"""All open lists whose modules are imported, by name."""
_LATER = "(registered later)"
_WITHOUT = "(without kind)"


class Kinds(Mapping[str, T]):
    """One open list: the members by name, those that were registered last.

    What entry points name is loaded when it is first asked for. What does not load, is not what the list asks for, or
    has a name that is taken is left out; coband goes on without it. Those of other packages are loaded at once when the
    list is wanted for the first time, so that warnings about them come first.

    Args:
        name: in the plural, with underscores, such as ``topologies``; its entry-point group is ``coband.<name>``.
        check: returns a member, or raises `PluginError` when it is not what the list asks for.
        accepts: whether `register` puts an object into this list.
        name_of: the name of a member.

    Attributes:
        registered: those that were given in this process.
        registrations: how often something was.
        broken: entry points that could not be loaded, with the reason; ours are added when they are asked for.
    """

    def __init__(
        self,
        name: str,
        check: Callable[[str, object], T],
        accepts: Callable[[Any], bool],
        name_of: Callable[[Any], str] | None = None,
    ) -> None:
        self.name, self.group, self.accepts = name, f"coband.{name}", accepts
        self._check, self.name_of = check, name_of or kind_name
        self._lasting: dict[str, T] = {}
        self.registered: dict[str, T] = {}
        self.registrations = 0
        self.broken: dict[str, str] = {}
        LISTS[name] = self

    @classmethod
    def of(cls, name: str, base: Any, own: tuple[Any, ...] = ()) -> Kinds[Any]:
        """A list of classes derived from ``base``, each with a field ``kind: Literal[...]``."""
        made: Kinds[Any] = Kinds(
            name, lambda kind, found: checked_class(kind, found, base), lambda found: is_subclass(found, base)
        )
        made._lasting.update((kind_name(one), one) for one in own)
        return made

    @cached_property
    def _offered(self) -> tuple[dict[str, EntryPoint], list[str]]:
        """Entry points by name, in alphabetical order and ours first, and a sentence for each that is left out."""
        taken: dict[str, EntryPoint] = {}
        said: list[str] = []
        for point in installed(self.group):
            name, of = point.name, f"{self.group}: {point.name!r} of {distribution(point)} ({point.value})"
            if name in taken:
                if taken[name].value != point.value:
                    said.append(f"{of} is ignored: {distribution(taken[name])} ({taken[name].value}) has that name")
            elif name in self._lasting:
                said.append(f"{of} is ignored: coband has a kind of that name")
            else:
                taken[name] = point
        for name, point in list(taken.items()):
            if distribution(point) != OWN_DISTRIBUTION and not self._load(name, taken):
                of = f"{self.group}: {name!r} of {distribution(point)} ({point.value})"
                said.append(f"{of} is left out: {self.broken[name]}")
        return dict(sorted(taken.items())), said

    def _load(self, name: str, points: dict[str, EntryPoint]) -> bool:
        """Load what an entry point names, unless that has been done; False if there is none, or it does not load."""
        if name in points and name not in self._lasting:
            try:
                self._lasting[name] = self._check(name, loaded(points[name], object))
                self.broken.pop(name, None)  # it may have asked for its own list while it was loaded
            except RAISED as error:  # whatever the check of a plugin raises, coband goes on without it
                self.broken[name] = str(error) if isinstance(error, PluginError) else exception_told(error, place=True)
                del points[name]
        return name in self._lasting

    @property
    def warnings(self) -> list[str]:
        """One sentence for each entry point that was left out."""
        return self._offered[1]

    def __getitem__(self, name: str) -> T:
        if name in self.registered:
            return self.registered[name]
        if name not in self._lasting and not self._load(name, self._offered[0]):
            raise KeyError(name)
        return self._lasting[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self.lasting(), *self.registered]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def lasting(self) -> Mapping[str, T]:
        """Those that are there in every process: coband's own and those of installed packages."""
        points = self._offered[0]
        own = [name for name in self._lasting if name not in points]
        return {name: self._lasting[name] for name in (*own, *list(points)) if self._load(name, points)}

    def register(self, found: T) -> T:
        """Put a member into the list of this process; one that was registered under its name before is replaced.

        Raises:
            PluginError: it is not what the list asks for, or has the name of one of coband's own.
        """
        name = self.name_of(found)
        checked, points = self._check(name, found), self._offered[0]
        point = points.get(name)
        if distribution(point) == OWN_DISTRIBUTION if point else name in self._lasting:
            raise PluginError(f"{self.name}: {name!r} is coband's own; give yours another name")
        if point and name not in self.registered:
            said = f"{self.name}: {name!r} is installed, too; what was given in Python takes its place"
            warnings.warn(said, RuntimeWarning, stacklevel=2)
        self.adopt({name: checked})
        return found

    def adopt(self, members: Mapping[str, T]) -> None:
        """Take in what this process, or the one that it works for, has registered."""
        self.registered.update(members)
        self.registrations += 1

    def field(
        self,
        *others: Kinds[Any],
        default: type | None = None,
        words: Words | None = None,
        without: str = "",
        **further: type,
    ) -> ByKind:
        """The annotation of a field that holds one of them, or of other lists; see `ByKind`."""
        return ByKind((self, *others), default, words, without, further)

    __eq__, __hash__ = object.__eq__, object.__hash__


def registrations() -> int:
    """How often something was registered in this process; what was derived from the lists before is of no use."""
    return sum(one.registrations for one in LISTS.values())


def kind_name(found: Any) -> str:
    """The value of the field ``kind`` of a class.

    Raises:
        PluginError: it has no such field.
    """
    hint = None
    if "kind" in getattr(found, "model_fields", ()):
        hint = found.model_fields["kind"].annotation
    elif isinstance(found, type):
        hint = get_type_hints(found).get("kind")
    names = get_args(hint) if get_origin(hint) is Literal else ()
    if len(names) != 1 or not isinstance(names[0], str):
        raise PluginError(f"{kind_of(found)} must have a field `kind: Literal['NAME']`, the name in scenarios")
    return names[0]


def checked_class(name: str, found: object, base: Any) -> Any:
    """The class of a kind.

    Raises:
        PluginError: it is not derived from the base of its list, or has another ``kind``.
    """
    if not is_subclass(found, base):
        raise PluginError(f"a subclass of coband.{base.__name__} is expected, not {kind_of(found)}")
    assert isinstance(found, type)
    if kind_name(found) != name:
        raise PluginError(f"{found.__name__} must have the field `kind: Literal[{name!r}]`, the entry point's name")
    hold_to(found, base)
    return found


class ByKind:
    """Tells pydantic to read a mapping with the class that its ``kind`` names, so that errors name one class only.

    Pydantic asks annotations for a schema by this method's name. It does so when a model is used for the first time, so
    that plugins may import coband while they are being loaded themselves. Members that are registered later are looked
    up at each validation.

    Args:
        lists: with the classes.
        default: reads a mapping without ``kind``; None: there is none.
        words: gives the kinds that may be written as a word, ``ring`` for ``{kind: ring}``.
        without: a kind that cannot stand here.
        further: more classes, each with the one value of its field ``kind``.
    """

    def __init__(
        self,
        lists: Sequence[Kinds[Any]],
        default: type | None,
        words: Words | None,
        without: str,
        further: Mapping[str, type],
    ) -> None:
        self._lists, self._default, self._words = lists, default, words
        self._without, self._further = without, further

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        members = dict(self._further)
        for one in reversed(self._lists):
            members = {**(lasting := one.lasting()), **members, **lasting}
        members.pop(self._without, None)
        if not members and self._default is None:
            raise PluginError(
                "coband's own entry points are missing; install it again, in its checkout: pip install -e ."
            )
        choices = {kind: handler.generate_schema(member) for kind, member in members.items()}
        if self._default is not None:
            choices[_WITHOUT] = handler.generate_schema(self._default)

        def kind_in(value: object) -> str | None:
            """The name of the choice that reads a value."""
            if not isinstance(value, dict) and not hasattr(value, "kind") and not self._is_default(value):
                return _LATER  # which reads words, and says that it is not a mapping
            if any(one.accepts(type(value)) and type(value) not in one.lasting().values() for one in self._lists):
                return _LATER
            kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
            if kind is None and self._default is not None:
                return _WITHOUT
            return _LATER if isinstance(kind, str) and kind in self._registered() else kind

        later = {"type": "function-plain", "function": {"type": "no-info", "function": self._read}}
        return {
            "type": "tagged-union",
            "discriminator": kind_in,
            "choices": {**choices, _LATER: later},
            "metadata": {"pydantic_js_annotation_functions": [self._json_schema]},
        }

    def _registered(self) -> dict[str, type]:
        return dict(chain(*(one.registered.items() for one in self._lists)))

    def _is_default(self, value: object) -> bool:
        return self._default is not None and isinstance(value, self._default)

    def _read(self, value: object) -> Any:
        """A value of a kind that was registered later, or a word."""
        from pydantic_core import PydanticKnownError

        if self._words is not None and isinstance(value, str) and value in self._words():
            return adapter(self._lists[0][value]).validate_python({"kind": value})
        if isinstance(value, dict):
            return validated_strictly(adapter(self._registered()[value["kind"]]), json.dumps(value))
        if not hasattr(value, "kind"):
            raise PydanticKnownError("model_attributes_type")
        return value

    def _json_schema(self, core_schema: Any, handler: Any) -> JsonSchemaValue:
        choices = {name: part for name, part in core_schema["choices"].items() if name not in (_LATER, _WITHOUT)}
        choices |= {name: adapter(one).core_schema for name, one in self._registered().items()}
        union = {"type": "tagged-union", "discriminator": "kind", "choices": choices}
        if self._default is None:
            return dict(handler(union if len(choices) > 1 else {"type": "union", "choices": [*choices.values()]}))
        default = dict(handler({"type": "union", "choices": [core_schema["choices"][_WITHOUT]]}))
        return {"anyOf": [default, handler(union)]} if choices else default


@lru_cache(maxsize=64)
def adapter(found: type) -> TypeAdapter[Any]:
    """What validates one class."""
    from pydantic import BaseModel, TypeAdapter

    if issubclass(found, BaseModel):
        found.model_rebuild()  # once, as the scenario is also written with it
    return TypeAdapter(found)


def validated_strictly(reader: TypeAdapter[Any], text: str) -> Any:
    """Validate JSON strictly: numbers, text and booleans are not converted into each other.

    Raises:
        ValidationError: it is invalid.
    """
    from pydantic import ValidationError

    try:
        return reader.validate_json(text, strict=True)
    except ValidationError as error:
        if not all(map(is_false_alarm, error.errors(include_url=False))):
            raise
    return reader.validate_json(text)


def is_false_alarm(error: ErrorDetails) -> bool:
    """Whether the error only says that a JSON list is not a tuple, that a mapping is not a dataclass, or that a list
    is too short because an entry of it has such an error.

    Strict validation of JSON accepts them, except after a validator that runs in mode "before".
    """
    if error["type"] == "too_short" and isinstance(error["input"], list):
        return len(error["input"]) >= int(error["ctx"]["min_length"])
    given_list = isinstance(error["input"], list) and error["type"] in ("tuple_type", "set_type", "frozen_set_type")
    return given_list or (isinstance(error["input"], dict) and error["type"] == "dataclass_exact_type")
