"""Rules of the sections ``messages`` and ``adversaries``: they speak of messages, fields and agents that there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.wire.adversaries import Adversary
from coband.simulator.core.wire.config import SINGLE
from coband.simulator.core.wire.defences import DEFENCES, BaseDefence, Clip, Sum, single_pull
from coband.simulator.core.wire.encodings import BaseEncoding
from coband.simulator.core.wire.privacy import Privacy
from coband.simulator.scenario_errors import KeyPath, did_you_mean, quoted

Mistakes = Iterator[tuple[KeyPath, str]]
Kinds = Sequence[type[Message]]


def of_the_wire(valid: Mapping[str, Any], algorithms: Sequence[Algorithm | None]) -> Mistakes:
    """(key path, what is wrong with it).

    Args:
        valid: the sections that are valid when considered alone.
        algorithms: of all entries; None for one that is not known, whose messages are not known either.
    """
    known = list(dict.fromkeys(one for one in algorithms if one is not None))
    sent = list(dict.fromkeys(size.message for one in known for size in one.messages))
    complete = None not in algorithms
    found: dict[str, Any] = {key: valid.get(key) for key in ("messages", "network", "server")}
    config, network, server = found.values()
    graph = network is not None and network.graph is not None
    defended = server is not None and not server.aggregate.sums
    if config is not None:
        yield from _encodings(config.encoding, sent, complete)
        acknowledged = network is not None and network.transport == "reliable" and not graph
        if not acknowledged and any(one.acknowledged for one in config.encoding.used):
            message = "a delta counts from what was acknowledged, which needs network.transport: reliable on a star"
            yield ("messages", "encoding"), message
    if config is not None and (privacy := config.privacy) is not None:
        yield from ((("messages", "privacy"), text) for one in known for text in _leaks(privacy, one))
        if privacy.adversary == "others" and not graph:
            yield from ((("messages", "privacy", "adversary"), text) for text in _unbounded(config, defended, sent))
    for one in known if defended else ():
        if why := undefended(one, server.aggregate, graph):
            yield ("server", "aggregate"), why
    adversaries = valid.get("adversaries", ())
    for number, lie in enumerate(adversaries):
        for place, name in enumerate(lie.messages or ()):
            if complete and not _named(sent, name):
                yield ("adversaries", number, "messages", place), _unknown(sent, name)
    if complete:
        yield from _idle_lies(adversaries, known)


def _idle_lies(adversaries: Sequence[Adversary], known: Sequence[Algorithm]) -> Mistakes:
    """Adversaries that change nothing of any algorithm, and algorithms of which none of them changes anything."""
    found = [[untouched(one, adversary) for one in known] for adversary in adversaries]
    speaks = [any(size.direction != "down" for size in one.messages) for one in known]
    idle = [all(why or not spoken for why, spoken in zip(row, speaks, strict=True)) for row in found]
    for number, row in enumerate(found):
        if idle[number] and any(row):
            yield ("adversaries", number), next(filter(None, row))
    for whys in zip(*found, strict=True) if not all(idle) else ():
        if all(whys):
            yield ("adversaries",), whys[0]


def untouched(one: Algorithm, adversary: Adversary) -> str:
    """Why lies change nothing of what agents of an algorithm send; empty if they do, or if the agents send nothing."""
    sent = list(dict.fromkeys(size.message for size in one.messages if size.direction != "down"))
    if not sent or adversary.behaviour.poisons or any(map(adversary.touches, sent)):
        return ""
    fields = [f"{kind.__name__}.{name} ({kind.meaning(name)})" for kind in sent for name in kind.payload_fields()]
    named = f" of {', '.join(adversary.messages)}" if adversary.messages else ""
    return (
        f"{adversary.behaviour.kind} changes nothing that agents of {one.name} send: it changes "  # type: ignore[attr-defined]
        f"{', '.join(adversary.meant)}{named}, and they send {', '.join(fields) or 'no payload'}; so these runs would "
        "be those of honest agents; take silent or reward_poisoning, or other fields or messages"
    )


def undefended(one: Algorithm, defence: BaseDefence | type[BaseDefence], graph: bool) -> str:
    """Why a defence has no meaning for an algorithm; empty if it has one."""
    kinds = [size.message for size in one.messages]
    if graph:
        if not kinds:
            return f"{one.name} tells neighbours nothing, so there is nothing to defend"
        if not any(map(single_pull, kinds)):
            return (
                f"agents of {one.name} tell each other no single pulls with the features of their arms, and a defence "
                "on a graph judges nothing else"
            )
        if not defence.judges:
            return (
                f"on a graph agents of {one.name} learn from single pulls, which have no mean to put in the place of a "
                f"sum; give clip or reject_outliers, which say how much of what a neighbour tells is taken"
            )
        return ""
    if "1" in one.undefended:
        return f"no defence can take the place of what the server of {one.name} does: {one.undefended['1']}"
    if any(kind.declared(name)["adds"] for kind in kinds for name in kind.payload_fields()):
        return ""
    if one.withstands:
        return f"the server of {one.name} sums nothing that a defence could replace: it {one.withstands}"
    if not kinds:
        return f"{one.name} sends nothing to a server, so there is nothing to defend"
    if any(kind.meaning(name) == "rewards" for kind in kinds for name in kind.payload_fields()):
        return f"agents of {one.name} pass on single pulls, or results of single arms, which a defence cannot compare"
    return f"nothing that agents of {one.name} send says that it adds up over agents (payload(adds=...))"


def defences(one: Algorithm) -> list[str]:
    """The kinds of defences that an algorithm can have."""
    graph, members = one.server is None, DEFENCES.items()
    return [kind for kind, found in members if found is not Sum and not undefended(one, found, graph)]


def stand(one: Algorithm) -> str:
    """Say in a line what stands between an algorithm and Byzantine agents; empty for one that sends nothing."""
    graph, taken = one.server is None, ", ".join(defences(one))
    if not one.messages:
        return ""
    if not taken:
        return f"server.aggregate is refused: {undefended(one, Clip, graph)}"
    others = "".join(f"; refused with {condition}: {why}" for condition, why in one.undefended.items())
    whose = "agents believe what others tell them" if graph else "its server takes the sum of what it is sent"
    return f"{whose}, which is not a defence; server.aggregate can be {taken}{others}"


def _named(sent: Kinds, name: str) -> Kinds:
    return [one for one in sent if name in (one.__name__, one.kind)]


def _unknown(sent: Kinds, name: str) -> str:
    known = sorted({one.__name__ for one in sent if one.payload_fields()})
    near = did_you_mean(name, [*known, *(one.kind for one in sent)]) or ";"
    return f"no algorithm here sends a message {quoted(name)}{near} messages: {', '.join(known) or 'none'}"


def _encodings(config: Any, sent: Kinds, complete: bool) -> Mistakes:
    for name, fields in config.kinds.items():
        path, found = ("messages", "encoding", "kinds", name), _named(sent, name)
        if not found and complete:
            yield path, _unknown(sent, name)
        for field, encoding in fields.items() if found else ():
            yield from (((*path, field), text) for text in _of_field(found, field, encoding))


def _of_field(found: Kinds, field: str, encoding: BaseEncoding) -> Iterator[str]:
    meanings = {name: kind.meaning(name) for kind in found for name in kind.payload_fields()}
    meant = {meaning for name, meaning in meanings.items() if field in (name, meaning)}
    if not meant:
        there = sorted({*meanings, *meanings.values()})
        near = did_you_mean(field, there) or ";"
        yield f"{found[0].__name__} carries no {quoted(field)}{near} it carries: {', '.join(there)}"
    if encoding.sums and meant & set(SINGLE):
        kind = getattr(encoding, "kind", "it")
        yield f"{kind} is for sums and models; give points and rewards a float or {{kind: stochastic}}"


def _leaks(privacy: Privacy, algorithm: Algorithm) -> Iterator[str]:
    """What noise would not hide of an algorithm: all of it, or something where that is refused."""
    found = privacy.unprotected(algorithm)
    if why := privacy.idle(algorithm):
        yield why
    elif found and privacy.leak == "refuse":
        yield (
            f"{algorithm.name} is not private: {'; '.join(found)}. Choose another mechanism (laplace_local, on arms "
            "that are new at every turn, leaves nothing unprotected), or set leak: allow, and the report says so"
        )


def _unbounded(config: Any, defended: bool, sent: Kinds) -> Iterator[str]:
    """What keeps one pull from changing a server's sums by no more than their bound, on which noise is calibrated."""
    text = "with adversary: others, noise on what the server sends hides a pull in exact sums of exact uploads alone"
    if defended:
        yield f"{text}; leave out server.aggregate, or take adversary: server"
    fields = [(kind, name) for kind in sent for name in kind.payload_fields() if kind.declared(name)["adds"]]
    if lossy := {kind.__name__ for kind, name in fields if not config.encoding.of(kind, name).exact}:
        yield f"{text}; write {', '.join(sorted(lossy))} exactly (messages.encoding), or take adversary: server"
