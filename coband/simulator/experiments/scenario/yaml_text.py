"""Writing documents as YAML text that YAML 1.1 and YAML 1.2 parsers read back unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import yaml

from coband.simulator.experiments.scenario.yaml_nodes import FLOAT, INTEGER

if TYPE_CHECKING or not yaml.__with_libyaml__:
    from yaml import SafeDumper
else:
    from yaml import CSafeDumper as SafeDumper  # the same text in a fifth of the time


class _Dumper(SafeDumper):
    """Quotes text that either version of YAML would read as another type; writes lists of plain values in one line."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def list_of(self, data: list[Any]) -> yaml.SequenceNode:
        """A list, on one line if all its items are plain values."""
        flow = not any(isinstance(item, (list, dict)) for item in data)
        return self.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=flow)


for _pattern in (FLOAT, INTEGER):
    _Dumper.add_implicit_resolver(
        "tag:yaml.org,2002:float", re.compile(rf"(?:{_pattern.pattern})\Z"), list("-+.0123456789")
    )
_Dumper.add_representer(list, _Dumper.list_of)


_UNREADABLE = re.compile(r"[\x7f-\x9f\ufffe\uffff]")


def in_one_line(value: Any) -> str:
    """A plain value as JSON that YAML reads back unchanged, which takes some characters for line breaks."""
    return _UNREADABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def to_yaml(document: Mapping[str, Any]) -> str:
    """The document as YAML; keys keep their order."""
    return yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
