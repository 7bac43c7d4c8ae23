"""The numbers that every result has, declared as an algorithm or a problem declares its own."""

from __future__ import annotations

from operator import attrgetter

from coband.simulator.core.nodes.message import HELD
from coband.simulator.metrics import CLIPPED, DICTIONARY_SIZE, Metric, RunMetric
from coband.simulator.plugins.entry_points import PluginError, kind_of
from coband.simulator.plugins.kinds import Kinds

ALWAYS: tuple[Metric, ...] = (
    Metric("turns", "pulls", "pulls of all agents", locked=True),
    Metric(
        "regret",
        "units of the reward",
        "sum over all pulls of (best mean reward - mean reward of the arm pulled)",
        better="lower",
    ),
    Metric("reward", "units of the reward", "sum of all rewards, as agents are told them"),
    Metric(
        "messages",
        "messages",
        "messages sent, a broadcast counted once per receiver",
        better="lower",
        locked=True,
        verb="sends the fewest messages",
    ),
    Metric(
        "uplink_scalars",
        "scalars",
        "real numbers that agents sent to the server",
        better="lower",
        locked=True,
        title="scalars up",
        verb="uploads the fewest scalars",
    ),
    Metric("downlink_scalars", "scalars", "real numbers that the server sent, counted per receiver", locked=True),
    Metric("peer_scalars", "scalars", "real numbers that agents sent to each other, counted per link", locked=True),
    Metric(
        "scalars",
        "scalars",
        "real numbers sent in all",
        better="lower",
        title="scalars sent",
        verb="sends the fewest scalars",
    ),
    Metric("scalars_broadcast_once", "scalars", "real numbers sent, a broadcast counted once", locked=True),
    Metric("rounds", "rounds", "communication rounds completed", aggregate="max", locked=True),
    Metric(
        "simulated_time",
        "time units",
        "when the last pull, reward or message came",
        better="lower",
        verb="is done first",
    ),
    Metric("deliveries", "messages", "agents of a graph that a message reached, summed over messages", locked=True),
    Metric("transmissions", "messages", "copies on links of a graph, also of messages that are passed on", locked=True),
    DICTIONARY_SIZE,
    Metric("stalled", "turns", "turns never taken: agents waited for what did not come, or were down for good"),
)
"""What every record has, null where it does not apply; columns of the run store."""

CORE: tuple[Metric, ...] = (
    *ALWAYS,
    Metric("regret_per_agent", "units of the reward", "regret of an average agent"),
    Metric(
        "energy",
        "joules",
        "what agents have taken from their batteries",
        better="lower",
        title="energy (joules)",
        verb="takes the least energy",
    ),
    Metric("energy_turns", "joules", "what turns have taken", title="energy turns (joules)"),
    Metric("energy_up", "joules", "what sending has taken", title="energy up (joules)"),
    Metric("energy_down", "joules", "what receiving has taken", title="energy down (joules)"),
    Metric("energy_idle", "joules", "what idling has taken", title="energy idle (joules)"),
    Metric("energy_charged", "joules", "what chargers have put into batteries", title="energy charged (joules)"),
    Metric("ran_out", "agents", "agents that were below their reserve for want of energy at some time"),
    Metric("outstanding", "pulls", "pulls whose rewards have not reached their agents when the run ends"),
    Metric("dishonest", "agents", "agents that do not send what their protocol says"),
    Metric("honest_regret", "units of the reward", "regret of the honest agents"),
    Metric("honest_regret_per_agent", "units of the reward", "regret of an average honest agent", better="lower"),
    Metric(
        "epsilon", "epsilon", "privacy that an agent has spent at most: a pull changes odds by a factor of e^epsilon"
    ),
    CLIPPED,
    Metric("uplink_scalars_per_agent", "scalars", "uplink scalars of an average agent"),
    Metric(
        "scalars_per_agent",
        "scalars",
        "real numbers sent in all over the number of agents: the communication cost of Pavlovic et al. 2024, section 2",
    ),
    Metric(
        "closest_decision",
        "share of the larger score",
        "smallest gap between the best arm's score and the next one at any turn; below 1e-12 rounding may have decided",
        aggregate="min",
    ),
    Metric(
        "mean_age",
        "pulls",
        "pulls by anybody that a decision did not know of, on average over all decisions",
        better="lower",
        aggregate="mean",
        title="age of information",
        verb="acts on the freshest information",
    ),
    Metric(
        "mean_age_time",
        "time units",
        "time since the newest message was sent that the agent had learnt from, on average over decisions",
        aggregate="mean",
    ),
    Metric("bits", "bits", "payload and headers of all messages"),
    *(Metric(f"{name}_bits", "bits", f"payload of all messages that holds {what}") for name, what in HELD.items()),
    Metric("wire_messages", "messages", "messages, repetitions and acknowledgements of the transport"),
    Metric("wire_scalars", "scalars", "real numbers sent, repetitions included"),
    Metric("wire_bits", "bits", "payload and headers of all that the transport sent"),
    Metric("dropped", "messages", "copies that were lost on the way"),
    Metric("expired", "messages", "messages that the transport gave up"),
)
"""All that coband itself counts and measures."""

CORE_NAMES = frozenset(metric.name for metric in CORE)


def _checked(name: str, found: object) -> RunMetric:
    if not isinstance(found, RunMetric):
        raise PluginError(f"a coband.RunMetric is expected, not {kind_of(found)}")
    if found.name != name:
        raise PluginError(f"the entry point is called {name!r} but the metric {found.name!r}; give both one name")
    if found.name in CORE_NAMES:
        raise PluginError(f"the metric {found.name!r} is coband's own; give yours another name")
    return found


METRICS = Kinds("metrics", _checked, lambda found: isinstance(found, RunMetric), attrgetter("name"))
"""Numbers of every run that other packages compute."""
