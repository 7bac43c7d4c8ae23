"""How much a study has to run, in one line, before it runs."""

from __future__ import annotations

from coband.simulator.core.clock.schedule import Phases, Renewal, Rounds
from coband.simulator.experiments.runs.study import Study, counted
from coband.simulator.experiments.scenario.scenario import Scenario


def workload(study: Study) -> str:
    """The size of a study, such as ``600 turns × 50 agents × 5 algorithms × 6 replications = 900,000 pulls``.

    Empty as long as it is not known what runs. A duration, or ``until``, makes the product a bound. With ``tuning`` it
    counts the candidates alone. There is no product where only time, or the algorithm's own rule, ends jobs.
    """
    scenarios = [variant.scenario for variant in study.variants]
    if not scenarios:
        return ""
    jobs = [scenario.schedule.total_turns(scenario.agents.count) for scenario in scenarios]
    known = [pulls for pulls in jobs if pulls is not None]
    each = list(dict.fromkeys(map(_job, scenarios)))
    if len(each) > 1:
        each = [f"{min(known):,} to {max(known):,} pulls" if len(known) == len(jobs) else "jobs of several lengths"]
    first, later = study.factors()
    bounds = {"at most": any(scenario.schedule.duration is not None for scenario in scenarios)}
    bounds["at least"] = study.until is not None and not later
    bound = "".join(f"{name} " for name, holds in bounds.items() if holds)
    if len(known) < len(jobs) or all(bounds.values()):
        return f"{each[0]} × {first}{later}"
    return f"{each[0]} × {first} = {bound}{sum(known) * study.first_replications:,} pulls{later}"


def _job(scenario: Scenario) -> str:
    """The turns of one job, as its schedule counts them."""
    schedule, agents = scenario.schedule, counted(scenario.agents.count, "agent")
    end = "" if schedule.duration is None else f" until time {schedule.duration:g}"
    if isinstance(schedule, Phases):
        return f"pulls{end or ' until the algorithm stops by its own rule'} × {agents}"
    if isinstance(schedule, Rounds | Renewal):
        if schedule.turns is None:
            return f"turns{end} × {agents}"
        return f"{counted(schedule.turns, 'turn')}{end and f', at most{end},'} × {agents}"
    total = schedule.total_turns(scenario.agents.count)
    if total is None:
        return f"turns{end} of {agents} together"
    return f"{counted(total, 'turn')} of {agents} together{end and f', at most{end},'}"
