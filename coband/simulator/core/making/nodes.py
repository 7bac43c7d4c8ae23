"""Making the nodes of a run, and telling each what it may know."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import require_room
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.classes import start_node
from coband.simulator.core.clock.schedule import Phases, Renewal, Rounds
from coband.simulator.core.formulas import evaluate
from coband.simulator.core.nodes.context import DeclaredContext, NodeContext, Sharing
from coband.simulator.core.nodes.decisions import ClosestDecision
from coband.simulator.core.nodes.graphs import Graph
from coband.simulator.core.nodes.lazy_sequence import LazySequence
from coband.simulator.core.nodes.node import Client, Node, Server, UnsupportedScenario
from coband.simulator.core.nodes.outbox import SERVER, Address
from coband.simulator.core.plan import Plan
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.world import World, in_batches
from coband.simulator.plugins.promises import overridden, written

if TYPE_CHECKING:
    from coband.simulator.core.twins.twins import Twins


N = TypeVar("N", bound=Node)


def _prepared(kind: type[N], context: NodeContext) -> N:
    """A node, which has called the ``__init__`` of its base class.

    Raises:
        UnsupportedScenario: it has not, or one of its methods takes other parameters than that of its base class.
    """
    if why := overridden(kind):
        raise UnsupportedScenario(why)
    try:
        node = kind(context)
        _ = node.context
        start_node(node)
        return node
    except AttributeError as error:
        if error.name != "context" or not isinstance(error.obj, kind):
            raise
    text = f"{kind.__name__}.__init__ must begin with `super().__init__(context)`, which gives the node its context"
    raise UnsupportedScenario(written(kind.__init__) + text)


KEPT_PER_TURN = 6
"""Numbers that a run keeps of every turn."""


@dataclass(frozen=True)
class Setup:
    """What the parts of a run are made from.

    Attributes:
        plan: what the scenario asks for.
        world: the problem of this replication, as agents meet it.
        streams: of this replication.
        graph: of the agents; None in a star.
        gone: the nodes that take no part any more, which the parts of the run share.
    """

    plan: Plan
    world: World
    streams: Streams
    graph: Graph | None
    gone: set[Address] = field(default_factory=set)


def make_nodes(
    setup: Setup,
    algorithm: Algorithm,
    config: BaseModel,
    made: int | None = None,
    share: bool | None = None,
    gone: Set[Address] | None = None,
) -> tuple[Sequence[Client], Server | None]:
    """The agents and the server, if the algorithm has one.

    Args:
        algorithm: what they run.
        config: its parameters.
        made: how many agents are made, the first ones, to see whether it can be done; None for all.
        share: whether they share work; None: as the plan says.
        gone: the nodes that take no part, as they know; None: those of the run.

    Raises:
        UnsupportedScenario: the algorithm cannot do what is asked of it.
        TooLarge: this machine has no room for the curves of the turns, or for what the nodes keep.
    """
    turns = setup.plan.schedule.total_turns(setup.plan.agents.count) or 0
    require_room(f"the curves of {turns:,} turns", KEPT_PER_TURN, turns, instead="take fewer turns")
    _check_direct(setup)
    _check_needs(setup, algorithm)
    _check_exact(setup, algorithm, config)
    _check_defence(setup, algorithm, config)
    _check_columns(setup, config)
    share, gone = setup.plan.share if share is None else share, setup.gone if gone is None else gone
    context_of = _contexts(setup, algorithm, config, share, gone)

    def agent(index: int) -> Client:
        return _prepared(algorithm.agent, context_of(index))

    later = made_later(setup) and made is None
    count = setup.plan.agents.count
    agents: Sequence[Client] = LazySequence(count, agent) if later else list(map(agent, range(count)[:made]))
    hops = getattr(agents[0], "hops", 1) if setup.graph is not None else 1
    if hops > 1 and any(part.behaviour.each for part in setup.plan.adversaries):
        from coband.simulator.core.wire.wire import ONE_HOP

        raise UnsupportedScenario(ONE_HOP)
    if (kind := algorithm.server_class) is None:
        return agents, None
    server, defence = _prepared(kind, context_of(SERVER)), setup.plan.server.aggregate
    if not defence.sums:
        from coband.simulator.core.wire.defences import Defended

        server.defence = Defended(defence)
    return agents, server


def _contexts(
    setup: Setup, algorithm: Algorithm, config: BaseModel, share: bool, gone: Set[Address]
) -> Callable[[int], NodeContext]:
    full, count, world = setup.plan.checks == "full", setup.plan.agents.count, setup.world
    sharing = Sharing(share, storage=not full or "storage" in algorithm.facts)
    domain = ArmSet.fixed(world.arms(0, 1)) if world.fixed_arms else None
    least = cache(lambda: setup.plan.schedule.turns_per_agent(count, setup.streams))
    count_turns = least if setup.plan.stays is None else lambda: None
    knowledge = world.knowledge() if in_batches(world) else None
    contexts, norms = getattr(world, "contexts", None), getattr(world, "norms", None)
    closest, network, delays = ClosestDecision(count), setup.plan.network, setup.plan.delays
    patient = network.recovery.patience is not None and setup.plan.faulty
    own_pace = isinstance(setup.plan.schedule, Phases)  # whose batches last as long as they are
    policy = replace(network.retry_policy, bounded=patient and not own_pace)
    open_ties = setup.streams.ties if setup.plan.ties == "random" else None
    total_turns = setup.plan.schedule.total_turns(count)
    if algorithm.needs.ends_together:  # without one of its agents it ends, so it counts on all of them
        gone = frozenset()
    told = partial(DeclaredContext, declared=algorithm.facts)
    make = told if full else NodeContext

    def context_of(index: int) -> NodeContext:
        network_context = None if contexts is None or index == SERVER else contexts[index]
        return make(
            index=index,
            agents=count,
            dimension=world.dimension,
            config=config,
            sharing=sharing,
            open_coin=setup.streams.coin,
            open_ties=open_ties,
            delays=delays,
            domain=domain,
            count_turns=count_turns,
            graph=setup.graph,
            network_context=network_context,
            knowledge=knowledge,
            parameter_norm=None if norms is None or index == SERVER else float(norms[index]),
            total_turns=total_turns,
            closest=closest,
            recovery=policy,
            gives_up=setup.plan.faulty,
            gone=gone,
        )

    return context_of


def made_later(setup: Setup) -> bool:
    """Whether agents are made when they first act or are sent something; then nobody looks at them before."""
    plan = setup.plan
    plain = setup.graph is None and not plan.intermittent and plan.checks != "full"
    return plain and not isinstance(plan.schedule, Phases | Renewal | Rounds)


def make_twins(setup: Setup, algorithm: Algorithm, config: BaseModel) -> Twins:
    """The nodes once more, each with all of its work to itself, to compare the others with."""
    from coband.simulator.core.twins.twins import Twins  # few runs need it

    known = set[Address]()
    agents, server = make_nodes(setup, algorithm, config, share=False, gone=known)
    twins = [*agents, *([] if server is None else [server])]
    return Twins(twins, not setup.plan.distrusts, setup.gone, known)


def _check_direct(setup: Setup) -> None:
    """Refuse to hand messages over at once where not all of them arrive at once."""
    if not (setup.plan.walks_hops or setup.plan.ideal):
        raise UnsupportedScenario(
            "network.local.mode: direct needs links without latency, bandwidth, loss, rules and partitions, those "
            "of agents.population too, agents that are always up, and none that are silent; leave it out"
        )


def _check_needs(setup: Setup, algorithm: Algorithm) -> None:
    """Refuse a world whose arms change where the algorithm needs them to stay, and a graph that falls into parts."""
    steady = getattr(setup.world, "steady_arms", False)
    if algorithm.needs.fixed_arms and not setup.world.fixed_arms:
        raise UnsupportedScenario(
            f"{algorithm.name} needs one arm set for all turns of all agents; this problem offers "
            + (
                "each agent arms of its own; leave out problem.offered, or give problem.kind fixed_domain"
                if steady
                else "fresh arms each turn; give problem.arms kind: pool without count, or problem.kind fixed_domain"
            )
        )
    if algorithm.needs.connected and setup.graph is not None and not setup.graph.connected:
        raise UnsupportedScenario(
            f"{algorithm.name} needs a connected graph; add links, so that there is a path between any two agents"
        )
    if algorithm.needs.steady_arms and not steady:
        raise UnsupportedScenario(
            f"{algorithm.name} needs arms that stay the same at all turns of an agent; give problem.kind own_arms "
            "or fixed_domain, or problem.arms kind: pool without count"
        )


def _check_exact(setup: Setup, algorithm: Algorithm, config: BaseModel) -> None:
    """Refuse encodings that change what nodes look up, or from what all of them conclude the same."""
    encoding, exact = setup.plan.messages.encoding, algorithm.needs.exact
    if exact and not evaluate(
        algorithm.needs.exact_if, {**algorithm.parameters(config), "fixed_arms": setup.world.fixed_arms}
    ):
        return
    for kind in dict.fromkeys(size.message for size in algorithm.messages) if exact else ():
        for name in kind.payload_fields():
            if {kind.__name__, kind.meaning(name)} & set(exact) and not encoding.of(kind, name).exact:
                raise UnsupportedScenario(
                    f"messages.encoding: nodes of {algorithm.name} look arms up by {kind.__name__}.{name}, or must "
                    "conclude the same from it, so that it must arrive as it was sent; give it float64 in "
                    "messages.encoding.kinds"
                )


def _check_defence(setup: Setup, algorithm: Algorithm, config: BaseModel) -> None:
    """Refuse a defence where parameters leave it nothing to take the place of."""
    for condition, why in {} if setup.plan.server.aggregate.sums else algorithm.undefended.items():
        if evaluate(condition, algorithm.parameters(config)):
            raise UnsupportedScenario(f"server.aggregate, for {algorithm.name} with {condition}: {why}")


def _check_columns(setup: Setup, config: BaseModel) -> None:
    """Refuse kernels that are restricted to coordinates which there are not."""
    network, contexts = getattr(config, "network_kernel", None), getattr(setup.world, "contexts", None)
    held = [
        ("kernel", getattr(config, "kernel", None), "arms have", setup.world.dimension),
        ("network_kernel.kernel", getattr(network, "kernel", None), "arms have", setup.world.dimension),
    ]
    if contexts is not None:
        held.append(("network_kernel", network, "network contexts have", contexts.shape[1]))
    for place, kernel, whose, coordinates in held:
        largest = getattr(kernel, "largest_column", -1)
        if largest >= coordinates:
            raise UnsupportedScenario(
                f"{place} names column {largest}, but {whose} {coordinates} coordinates, numbered from 0; name "
                "others, or leave columns out for all of them"
            )
