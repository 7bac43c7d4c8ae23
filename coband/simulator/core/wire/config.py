"""What a scenario says of the wire: its section ``messages``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from coband.simulator.core.config import Config
from coband.simulator.core.nodes.message import EXACT, Message
from coband.simulator.core.wire import accounting
from coband.simulator.core.wire.encodings import AnyEncoding, BaseEncoding, Float64
from coband.simulator.core.wire.privacy import Privacy

SINGLE = ("points", "rewards")
"""What is not a sum: it is not encoded by what is for sums."""
PLAIN = Float64(kind="float64")


class EncodingConfig(Config):
    """How real numbers are written on the wire."""

    default: AnyEncoding = PLAIN
    """Encoding of real numbers in a payload that declare what they are; float64: exact. Indices, counts and flags are
    always exact; sign, top, delta and error_feedback are for sums and models, and leave points and rewards exact."""
    kinds: Mapping[str, Mapping[str, AnyEncoding]] = {}
    """Class or kind of a message -> a field, or what it holds -> its encoding, such as
    {Upload: {gram: float32, moment: {kind: stochastic, bits: 8}}}."""

    def of(self, kind: type[Message], name: str) -> BaseEncoding:
        """The encoding of a field."""
        meaning = kind.meaning(name)
        if meaning in EXACT:
            return PLAIN
        for message in (kind.__name__, kind.kind):
            for field in (name, meaning):
                found = self.kinds.get(message, {}).get(field)
                if found is not None:
                    return found
        single = meaning in SINGLE and self.default.sums
        return PLAIN if meaning == "number" or single else self.default

    @property
    def remembers(self) -> bool:
        """Whether senders have to know which of their messages have arrived."""
        return any(encoding.remembers for encoding in self.used)

    @property
    def used(self) -> tuple[BaseEncoding, ...]:
        """All encodings that it names."""
        return self.default, *(one for fields in self.kinds.values() for one in fields.values())


class MessagesConfig(Config):
    """What is done to messages on their way."""

    counting: Literal["paper", "packed"] = "paper"
    """paper: every entry of a matrix counts, and an index as much as any number; packed: of a symmetric matrix
    m (m + 1) / 2 entries are sent, an index or count in as many bits as its values need, a flag in one."""
    encoding: EncodingConfig = EncodingConfig()
    """How real numbers are written."""
    privacy: Privacy | None = None
    """Noise that hides the pulls of agents; null: none."""
    repair: Literal["shift", "refuse"] = "shift"
    """What becomes of a sum of squares that arrives with a negative eigenvalue: its receiver adds the smallest multiple
    of the identity that makes it positive semidefinite, or the run ends and says which it was."""

    @property
    def plain(self) -> bool:
        """Whether nothing is done to messages."""
        return self.counting == "paper" and not self.lossy

    @property
    def absent(self) -> str:
        """What has to be installed before anything can run with it, in a sentence; empty if all is there."""
        accounted = self.privacy is not None and not self.privacy.mechanism.local
        return accounting.ABSENT if accounted and not accounting.installed() else ""

    @property
    def lossy(self) -> bool:
        """Whether a message may arrive other than it was sent."""
        return self.privacy is not None or not all(encoding.exact for encoding in self.encoding.used)
