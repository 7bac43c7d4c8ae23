"""Text that JSON writes as pairs of surrogates is YAML, too."""

import json

from coband.simulator.experiments.scenario import yaml_nodes


def test_pairs_of_surrogates_are_one_character() -> None:
    escaped, written = (json.dumps(["\N{GRINNING FACE}"], ensure_ascii=ascii) for ascii in (True, False))
    assert yaml_nodes.read(escaped, "file")[0] == yaml_nodes.read(written, "file")[0]
    assert yaml_nodes.read(r'["\ud83d\ude00"]', "file")[1] == []
    assert str(yaml_nodes.read(r'["\ud83d"]', "file")[1][0]) == "file:1:2: [0]: half a surrogate pair is not text"
