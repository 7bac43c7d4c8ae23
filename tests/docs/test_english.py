"""Pages, docstrings, help and messages are plain English: words that betray a translation, and what to say instead."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *ROOT.glob("*.md"),
    *(page for folder in ("", "doors", "howto", "decisions") for page in (ROOT / "docs" / folder).glob("*.md")),
]
CODE = re.compile(r"```.*?```|``?[^`]+``?|\]\([^)]*\)", re.DOTALL)
ORDINARY = (
    "longer|more|less|better|worse|fewer|wider|larger|smaller|later|earlier|faster|slower|higher|lower|older|further"
    "|reason|way|help"
)
THINGS = "numbers|rewards|results|errors|names|lines|keys|texts?|bytes|levels|estimates|sums|diagonals?|CODE"
INSTEAD = {
    r"\banew\b": "again",
    r"\bfor ever\b": "forever",
    r"(?<![/\w(])(?<!- )\bliars?\b(?![\w/:]| N\b)": "Byzantine agents",
    rf"(?<![Tt]here )\b(?:is|are) no (?!{ORDINARY})[a-z]+": "is not a ...",
    r"\blook(?:s|ed)? whether\b": "checks whether",
    r"\bof which (?:that of|nobody|nothing)\b": "a clause with its own subject",
    r"\b[Bb]esides?\b (?:those|every|what|its own|its payload|numbers|distributions|the metric)": "in addition to",
    rf"\b(?:{THINGS}) alone\b": "only",
    r"\b[A-Z]\w+ alone (?:has|have|is|are|was|were)\b": "only",
    r"(?:^|[.:;!?]\s+|\*\s+)Of (?:the|a|an|that|those|what|so|all|each|every|some|several) ": "the subject first",
    r"\bformer times\b|\bin vain\b|\bas a rule of\b": "a plainer word",
}


def told() -> Iterator[tuple[str, str]]:
    """Pages without their code, and every text of more than one word in the programs."""
    for page in PAGES:
        yield page.relative_to(ROOT).as_posix(), CODE.sub("CODE", page.read_text(encoding="utf-8"))
    for module in sorted((ROOT / "coband").rglob("*.py")):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                yield f"{module.relative_to(ROOT).as_posix()}:{node.lineno}", CODE.sub("CODE", node.value)


TOLD = list(told())


@pytest.mark.parametrize("words", INSTEAD)
def test_words_that_nobody_says(words: str) -> None:
    found = [
        f"{where}: {text[max(0, match.start() - 40) : match.end() + 40]!r}"
        for where, text in TOLD
        for match in re.finditer(words, text)
    ]
    assert not found, f"say {INSTEAD[words]!r}:\n" + "\n".join(found)
