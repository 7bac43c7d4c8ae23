"""The kernels that scenarios can name: those of every installed package under the entry-point group
``coband.kernels``."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from coband.simulator.maths.kernels.base import BaseKernel, CompositeKernel, KernelSpec
from coband.simulator.plugins.entry_points import PluginError, is_subclass, kind_of
from coband.simulator.plugins.kinds import Kinds


def _is_kernel(found: Any) -> bool:
    return is_subclass(found, BaseKernel) or is_subclass(found, CompositeKernel)


def checked_kernel(name: str, found: object) -> type:
    """The object of a kernel's entry point.

    Raises:
        PluginError: it is not a frozen dataclass derived from a base of coband's, or has another ``kind``.
    """
    if not _is_kernel(found):
        raise PluginError(
            f"a subclass of coband.BaseKernel or coband.StationaryKernel is expected, not {kind_of(found)}"
        )
    assert isinstance(found, type)
    parameters = getattr(found, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen or "__dataclass_params__" not in vars(found):
        raise PluginError(f"{found.__name__} must be a frozen dataclass: write @dataclass(frozen=True) above it")
    fields = getattr(found, "__dataclass_fields__", {})
    if is_subclass(found, BaseKernel) and "columns" not in fields:
        raise PluginError(f"{found.__name__} must have the field `columns: Columns | None = None`")
    kind = get_type_hints(found).get("kind")
    if get_origin(kind) is not Literal or get_args(kind) != (name,):
        raise PluginError(f"{found.__name__} must have the field `kind: Literal[{name!r}]`, the entry point's name")
    return found


KERNELS: Kinds[type] = Kinds("kernels", checked_kernel, _is_kernel)
AnyKernel = Annotated[KernelSpec, KERNELS.field()]
"""A kernel in a model of a scenario: ``{kind: ..., ...}`` of any installed package."""
