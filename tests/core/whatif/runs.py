"""Runs of the toy protocol, first as they are and then with something changed."""

from __future__ import annotations

from typing import Any

from coband.simulator.conformance.runs import plan_of
from coband.simulator.core.audit import trace as tr
from coband.simulator.core.audit.trace import Row, keep
from coband.simulator.core.engine import Engine, RunResult
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.whatif.addresses import AddressBook
from coband.simulator.core.whatif.changes import AgentChange, Key, MessageChange, WhatIf
from tests.core.toys import TOY, ToyConfig, ToyWorld


def perform(plan: dict[str, Any], whatif: WhatIf | None, seed: int = 0, **config: Any) -> tuple[RunResult, list[Row]]:
    """One run of the toy protocol."""
    rows: list[Row] = []
    parts = TOY, ToyConfig(**config), ToyWorld(), Streams(seed), keep(rows)
    engine = Engine(plan_of(plan), *parts, whatif=whatif)
    return engine.run(), rows


def original(plan: dict[str, Any], seed: int = 0, **config: Any) -> tuple[RunResult, list[Row], AddressBook]:
    """The run as it is, and where its draws are."""
    book = AddressBook()
    result, rows = perform(plan, WhatIf(book), seed, **config)
    book.writing = False
    return result, rows, book


def changed(
    plan: dict[str, Any],
    book: AddressBook,
    messages: dict[Key, MessageChange] | None = None,
    agents: dict[int, AgentChange] | None = None,
    seed: int = 0,
    **config: Any,
) -> tuple[RunResult, list[Row]]:
    """The run with something changed."""
    return perform(plan, WhatIf(book, messages or {}, agents or {}), seed, **config)


def happened(rows: list[Row], *events: int) -> list[tuple[float, int, int, int]]:
    """(time, event, node, peer) of the events of some kinds."""
    return [(row.time, row.event, row.node, row.peer) for row in rows if row.event in events]


def key_of(rows: list[Row], delivery: Row) -> Key:
    """The message of a delivery in a star: its pair, and its number among the messages of the pair."""
    sends = [
        row
        for row in rows
        if row.event == tr.SEND and row.node == delivery.peer and row.peer in (delivery.node, tr.EVERYONE)
    ]
    return delivery.peer, delivery.node, 1 + [row.message for row in sends].index(delivery.message)
