"""Verdicts, forecasts and choices of settings in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from coband.simulator.analysis.claims import trials
from coband.simulator.analysis.claims.claim import Claim
from coband.simulator.analysis.claims.condition import Finding
from coband.simulator.analysis.claims.outcome import LEVEL, Outcome, Verdict, fails_of, holds_of
from coband.simulator.experiments.statistics.evidence import ENOUGH, PRIOR_GROWTH

USUAL = math.ceil(ENOUGH / PRIOR_GROWTH)
"""Replications that decide an effect of half a standard deviation."""


def in_words(outcome: Outcome, claim: Claim, verdict: Verdict) -> str:
    """A verdict with the settings at which it is one.

    A setting counts by itself if its e-value is at least 20 times the number of settings (Bonferroni).
    """
    parts = outcome.parts()
    if claim.quantifier == "tuned":
        return f"{verdict} tuned" if outcome.chosen else verdict
    if claim.quantifier is None or verdict == "not run" or not parts:
        return verdict
    of = "settings" if claim.at_equal is None else f"levels of {claim.at_equal.metric}"
    enough = math.log(len(parts) / LEVEL)
    holding = [key for key, part in parts.items() if holds_of(part) >= enough]
    failing = [key for key, part in parts.items() if fails_of(part) >= enough]
    if len(failing) == len(parts) or (verdict == "does not hold" and claim.quantifier == "any"):
        return f"does not hold at any of {_count(len(parts))} {of}"
    if len(holding) == len(parts):
        return f"holds at all of {_count(len(parts))} {of}"
    told = {"holds": holding, "does not hold": failing}.get(verdict)
    words: list[str] = [] if told else [verdict]
    words += [f"holds at {_range(holding, list(parts))}"] if holding else []
    words += [f"does not hold at {_range(failing, list(parts))}"] if failing else []
    return "; ".join(words)


def _range(chosen: Sequence[str], known: Sequence[str]) -> str:
    """Some settings; as "D >= 28" if they are the last ones of an ascending parameter."""
    names, values = zip(*(one.partition(" = ")[::2] for one in known), strict=True)
    ascending = (
        len(set(names)) == 1 and all(map(_is_number, values)) and list(map(float, values)) == sorted(map(float, values))
    )
    count = len(chosen)
    if ascending and 1 < count < len(known) and list(chosen) in (list(known[:count]), list(known[-count:])):
        first = list(chosen) == list(known[:count])
        return f"{names[0]} {'<=' if first else '>='} {values[count - 1 if first else -count]}"
    return "; ".join(chosen)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _count(number: int) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    return words[number] if number < len(words) else str(number)


def forecast(outcome: Outcome) -> str:
    """What a verdict still takes, at the cost of the replications so far."""
    done = outcome.replications
    more = USUAL if done < 2 else outcome.missing
    if more is None:
        return "none, since what was measured is too near the border, or some settings have not run twice"
    begins_anew = done > 1 and not all(map(trials.goes_on, outcome.parts().values()))
    more = max(1, more + (done if begins_anew else 0))
    what = f"needs about {more} more replication{'s' if more > 1 else ''}"
    again = f" (the {done} on file run again, since their numbers were not kept)" if begins_anew else ""
    guess = "" if done > 1 else ", if its effect is half a standard deviation"
    hours = more * outcome.cpu_hours / done if outcome.cost_hours is None else outcome.cost_hours
    return f"{what}{again}, {hours:.2g} CPU hours{guess}"


def first(part: Sequence[Finding]) -> str:
    """What there is to say of replications without numbers."""
    return (
        f"*The first {part[0].start} replications:* their numbers were not kept, and their evidence is a factor; "
        f"estimates are of the other {len(part[0].rows)}."
    )


def in_settings(claim: Claim, outcome: Outcome) -> Iterator[str]:
    """The setting of each label, or at each level the weights of its settings."""
    for name, one in outcome.chosen.items():
        if claim.at_equal is None:
            yield f"{name} {trials.in_words(one)}"
        else:
            blends = (
                f"{label} {' + '.join(f'{weight:.0%} {trials.in_words(at)}' for weight, at in parts)}"
                for label, parts in one.items()
            )
            yield f"{name}: {', '.join(blends)}"
