"""The head of an algorithm's file: the paper, the oracle that is the paper's pseudo-code, and what to read next."""

import inspect
import re
from pathlib import Path
from types import ModuleType

from coband.extensions.conformance.runs import registry
from tests.every import every

ROOT = Path(__file__).parents[2]
HEAD = re.compile(r"^As printed: `tests/oracles/[\w/]+\.py`\. Next: `[^`]+\.py`(,\s`[^`]+\.py`)*\.$", re.MULTILINE)
MODULES = {entry.agent.__module__: inspect.getmodule(entry.agent) for entry in registry().algorithms.values()}


@every("module", sorted(MODULES))
def test_the_head_names_the_oracle_and_files_that_exist(module: str) -> None:
    found = MODULES[module]
    assert isinstance(found, ModuleType)
    first = (found.__doc__ or "").partition("\n\n")[0]
    assert HEAD.search(first)
    own = Path(inspect.getfile(found)).parent
    folders = (own, own.parent, own.parents[1], ROOT)  # paths begin at the file's folder, agents/, coband/ or the top
    assert [path for path in re.findall(r"`([^`]+)`", first) if not any((at / path).is_file() for at in folders)] == []
