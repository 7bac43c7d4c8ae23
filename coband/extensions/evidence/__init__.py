"""Evidence: claims of papers, tried on our own runs (``coband reproduce``), and algorithms that are compared on frozen
scenarios, tuned alike (``coband suite``).
"""

from coband.extending import Command, Extension

HERE = "coband.extensions.evidence"
EXTENSION = Extension(
    "evidence",
    {
        "reproduce": Command(f"{HERE}.reproduce:reproduce", "Try what papers claim, with intervals and verdicts."),
        "suite": Command(f"{HERE}.suite_command:suite", "Compare algorithms on frozen scenarios, tuned alike."),
    },
)
