"""One check of many cases: all of them are tried, and the report names those that fail."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest

F = TypeVar("F", bound=Callable[..., None])
MOST_REPORTED = 5
PARAM = type(pytest.param())


def every(
    names: str, cases: Iterable[Any], ids: Callable[[Any], str] | Iterable[str] | None = None
) -> Callable[[F], F]:
    """Call a test for all cases: ``pytest.mark.parametrize`` in a single test.

    Args:
        names: of the test's arguments, with commas between them.
        cases: the value of one argument, or the values of several; a ``pytest.param`` may have an ``id``. Those
            that are marked ``slow`` are a test of their own.
        ids: names of the cases, or what makes them from the value of one argument.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    params = [case if isinstance(case, PARAM) else _param(case, len(keys)) for case in cases]
    values = [dict(zip(keys, param.values, strict=True)) for param in params]
    assert values, "there is no case"
    labels = [param.id or _label(case) for param, case in zip(params, values, strict=True)]
    if ids is not None:
        labels = ["-".join(map(ids, param.values)) for param in params] if callable(ids) else list(ids)
    assert all(mark.name == "slow" for param in params for mark in param.marks), "no other mark than slow"
    is_slow = [any(mark.name == "slow" for mark in param.marks) for param in params]
    parts = {
        part: [
            (label, case) for label, case, slow in zip(labels, values, is_slow, strict=True) if slow == (part == "slow")
        ]
        for part in ("everyday", "slow")
    }

    def marked(test: F) -> F:
        signature = inspect.signature(test)
        assert set(keys) <= set(signature.parameters), f"{test.__qualname__} has no argument for one of {keys}"
        nested = "part" in signature.parameters.keys() - set(keys)  # the slow cases are those of another `every`
        assert not (nested and parts["slow"]), f"two lists of cases of {test.__qualname__} have slow ones"

        @functools.wraps(test)
        def looped(*, part: str = "everyday", **fixtures: Any) -> None:
            failures: list[Exception] = []
            skipped = []
            own, inner = (parts["everyday"], {"part": part}) if nested else (parts[part], {})
            for label, case in own:
                try:
                    test(**fixtures, **case, **inner)
                except pytest.skip.Exception as reason:
                    skipped.append(reason)
                except pytest.fail.Exception as failure:
                    failures.append(AssertionError(f"{label}: {failure}"))
                except Exception as error:
                    error.add_note(f"case: {label}")
                    failures.append(error)
                if len(failures) == MOST_REPORTED:
                    break
            if failures:
                raise ExceptionGroup(f"{len(failures)} or more of {len(own)} cases fail", failures)
            if len(skipped) == len(own):
                raise skipped[0]

        left = [parameter for name, parameter in signature.parameters.items() if name not in keys]
        marks = {"slow": pytest.mark.slow}
        given = [pytest.param(part, marks=marks.get(part, ())) for part, cases in parts.items() if cases]
        if not nested and (given[0].values != ("everyday",) or len(given) > 1):
            left.append(inspect.Parameter("part", inspect.Parameter.KEYWORD_ONLY))
            looped = pytest.mark.parametrize("part", given)(looped)
        looped.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return looped  # type: ignore[return-value]

    return marked


def _param(case: Any, arguments: int) -> Any:
    return pytest.param(case) if arguments == 1 else pytest.param(*case)


def _label(case: dict[str, Any]) -> str:
    return ", ".join(f"{name}={str(value)[:80]}" for name, value in case.items())
