"""Text from elsewhere, made harmless to whoever reads it: characters that deceive are spelled out."""

from __future__ import annotations

import re

DECEIVING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""Control characters but for tab and line feed, and those that change the direction of text or break lines."""


def visible(text: str) -> str:
    r"""The text with such characters spelled out, as in ``\u001b``, which is valid inside JSON as well."""
    return DECEIVING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
