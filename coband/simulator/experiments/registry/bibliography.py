"""What to cite: registry entries name references in ``cites``, by keys of ``references.bib`` beside this module or, as
plugins do, as whole BibTeX entries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files

from coband.simulator.problems.datasets import DATASETS, GRAPH_DATASETS, PublicDataset
from coband.simulator.problems.ratings import RATINGS

SOURCES: Mapping[str, PublicDataset] = {**DATASETS, **RATINGS, **GRAPH_DATASETS}
"""All public data by name."""


@lru_cache(maxsize=1)
def library() -> Mapping[str, str]:
    """Our own BibTeX entries by key."""
    text = files("coband.simulator.experiments.registry").joinpath("references.bib").read_text(encoding="utf-8")
    found = re.findall(r"^@\w+\{([^,]+),.*?^\}", text, flags=re.MULTILINE | re.DOTALL)
    texts = re.split(r"^(?=@)", text.strip(), flags=re.MULTILINE)
    return dict(zip(found, (one.strip() for one in texts if one.strip()), strict=True))


def bibtex(cites: Sequence[str]) -> str:
    """The BibTeX entries of references; keys that nobody knows are left out."""
    texts = (cite.strip() if cite.lstrip().startswith("@") else library().get(cite, "") for cite in cites)
    return "\n\n".join(filter(None, texts))
