"""What extensions are written with, in addition to the names of `coband`: the second public interface.

`extending.pyi` lists the names, each of which is documented where it is defined. A name that is a module, such as
``ledger``, stands for all that the module has without an underscore. Names are imported when they are first used, so
that declaring an extension takes no time.
"""

from __future__ import annotations

from typing import Any

from coband import homes, imported

_HOME_OF = homes(__file__ + "i")
__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    """Import a name at its first use."""
    return imported(__name__, name, _HOME_OF)


def __dir__() -> list[str]:
    return __all__
