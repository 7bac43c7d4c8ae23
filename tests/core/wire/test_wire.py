"""The wire: bits of fields counted by hand, what nodes and trace know of it, and that nothing changes without it."""

import itertools
import json
from math import ceil, log2
from typing import Any

import numpy as np
import pytest

from coband.agents.messages.linear import LinearUpload
from coband.extensions.conformance.graphs import on_graph, run_anywhere
from coband.extensions.conformance.kit import schedules_of, sends_nothing
from coband.extensions.conformance.runs import FIXED_PROBLEM, Run, algorithm, registry, run
from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.core.records import trace as tr
from coband.simulator.core.wire.config import MessagesConfig
from coband.simulator.core.wire.encodings import semidefinite
from coband.simulator.maths.linalg.gram import Gram
from tests.every import every

RING: dict[str, Any] = {"topology": {"kind": "ring"}}
LOSSY: dict[str, Any] = {"loss": 0.4, "latency": 0.2, "retransmission": {"timeout": 1.0, "max_attempts": 3}}
EIGHT: dict[str, Any] = {"kind": "stochastic", "bits": 8}


def of_field(made: Run) -> dict[tuple[str, str], tuple[int, int]]:
    """(kind, field) -> (scalars, bits)."""
    return {(kind, name): found for (kind, _, name, _), found in made.result.ledger.by_field().items()}


def test_without_a_wire_every_scalar_costs_the_same() -> None:
    made = run("dis_lin_ucb", {}, network={"scalar_bits": 32, "header_bits": 7})
    found, totals = of_field(made), made.result.totals
    rounds = made.result.rounds
    assert found["upload", "W"] == (3 * rounds * 9, 3 * rounds * 9 * 32)
    assert found["model", "b"] == (3 * rounds * 3, 3 * rounds * 3 * 32)
    assert totals["bits"] == totals["gram_bits"] + totals["moment_bits"] + 7 * totals["messages"]
    assert "points_bits" not in totals


def test_bits_of_dis_lin_ucb_by_hand() -> None:
    """d = 3: of W 6 of 9 entries in 8 bits, and a scale; b in float16."""
    kinds = {"LinearUpload": {"gram": EIGHT, "b": "float16"}}
    made = run("dis_lin_ucb", {}, messages={"counting": "packed", "encoding": {"kinds": kinds}})
    found, uploads = of_field(made), 3 * made.result.rounds
    assert made.result.rounds > 3
    assert found["upload", "W"] == (uploads * 9, uploads * (6 * 8 + 32))
    assert found["upload", "b"] == (uploads * 3, uploads * 3 * 16)
    assert found["model", "W"] == (uploads * 9, uploads * 6 * 64)
    assert found["model", "b"] == (uploads * 3, uploads * 3 * 64)


def test_bits_of_coop_kernel_ucb_by_hand() -> None:
    """3 agents, 60 turns, on a ring of 3 each message goes over 2 links: an index of 60 turns has 6 bits."""
    made = run(
        "coop_kernel_ucb", {}, network=RING, messages={"counting": "packed", "encoding": {"default": "bfloat16"}}
    )
    copies = 2 * 60
    assert ceil(log2(60)) == 6
    expected = {"trial": 6, "agent": 2, "point": 3 * 16, "reward": 16, "context": 0}
    assert {name: bits for (_, name), (_, bits) in of_field(made).items()} == {
        name: copies * bits for name, bits in expected.items()
    }


def test_bits_of_fn_ucb_by_hand() -> None:
    """p weights: two matrices up, one of each agent and one down, and diagonals where the algorithm sends those."""
    for diagonal in (False, True):
        options = {"diagonal": diagonal, "width": 4, "threshold": 0.4}
        made = run("fn_ucb", options, messages={"counting": "packed", "encoding": {"default": "float32"}})
        expected: dict[tuple[str, str], int] = {}
        for row, message in zip(made.events(tr.SEND), made.sent, strict=True):
            for name in message.payload_fields():
                value, bits = getattr(message, name), 0
                for item in value if isinstance(value, tuple) else (value,):
                    shape = np.shape(np.asarray(item)) if item is not None else (0,)
                    numbers = shape[0] * (shape[0] + 1) // 2 if len(shape) == 2 else int(np.prod(shape))
                    bits += numbers * (64 if name in ("alpha", "loss") else 32)
                key = message.kind, name
                expected[key] = expected.get(key, 0) + int(row.value) * bits
        assert made.result.rounds > 1
        assert {key: bits for key, (_, bits) in of_field(made).items()} == expected


@pytest.mark.parametrize("name", ["async_kernel_ucb", "dis_lin_ucb", "coop_kernel_ucb"])
def test_exact_encodings_change_nothing_but_bits(name: str) -> None:
    network = RING if name == "coop_kernel_ucb" else {}
    plain = run(name, {}, network=network)
    packed = run(name, {}, network=network, messages={"counting": "packed"})
    assert packed.result.fingerprint == plain.result.fingerprint
    assert packed.result.totals["scalars"] == plain.result.totals["scalars"]
    assert packed.result.totals["bits"] < plain.result.totals["bits"]


@pytest.mark.parametrize("trace", ["protocol", "full"])
def test_the_trace_says_what_was_done(trace: str) -> None:
    made = run("dis_lin_ucb", {}, trace=trace, messages={"encoding": {"kinds": {"upload": {"moment": EIGHT}}}})
    details = {made.names[row.kind]: row.detail for row in made.events(tr.SEND)}
    assert json.loads(details["upload"] or "{}")["wire"] == {"encoding": {"b": "stochastic"}}
    assert "wire" not in (details["model"] or "")


def test_receivers_get_what_was_decoded_and_senders_keep_what_they_sent() -> None:
    made = run("dis_lin_ucb", {}, messages={"encoding": {"default": "float16"}})
    uploads = [message for message in made.sent if isinstance(message, LinearUpload)]
    for upload in uploads:
        assert isinstance(upload.original, LinearUpload)
        assert upload.original is not upload
        assert (upload.talk, upload.pulls) == (upload.original.talk, upload.original.pulls)
        rounded = np.asarray(upload.original.W).astype(np.float16).astype(float)
        assert np.array_equal(np.asarray(upload.W), semidefinite(rounded))
        assert np.array_equal(upload.b, upload.original.b.astype(np.float16).astype(float))


@pytest.mark.parametrize(
    "spec", [EIGHT, {"kind": "error_feedback", "of": "sign"}, {"kind": "delta", "of": EIGHT}], ids=str
)
@pytest.mark.parametrize("name", ["fed_lin_ucb", "dis_lin_ucb", "async_kernel_ucb"])
def test_what_is_given_up_and_sent_again_is_what_it_was(name: str, spec: Any) -> None:
    """With all checks, over links that lose: what is repeated by transport or node has the same numbers."""
    made = run(name, {}, network=LOSSY, messages={"encoding": {"default": spec}})
    assert made.result.audit.given_up > 0
    seen: dict[int, Any] = {}
    for message in made.sent:
        if message.passage is not None:
            assert seen.setdefault(id(message.original), message) is message or len(message.original.sent_as) > 1


DELTA: dict[str, Any] = {"encoding": {"default": {"kind": "delta", "of": EIGHT}}}
JOINS: dict[str, Any] = {"joins": {"kind": "times", "times": [[2, 15.0]]}}
LEAVES: dict[str, Any] = {"leaves": {"kind": "times", "times": [[2, 2.0]]}}


def references(made: Run, kind: str) -> list[tuple[int, int, float]]:
    """(number, reference, largest error) of b in every message of a kind, in order."""
    found = []
    for message in made.sent:
        if message.kind == kind and message.passage is not None:
            (coded,) = message.passage.coded["b"]
            error = float(np.abs(coded.decoded - message.passage.original.b).max())  # type: ignore[attr-defined]
            found.append((message.passage.number, coded.reference, error))
    return found


@pytest.mark.parametrize("agent", [{}, LEAVES, JOINS], ids=["all stay", "one leaves", "one joins"])
def test_differences_count_from_what_all_members_have(agent: dict[str, Any]) -> None:
    schedule = {"kind": "rounds", "turns": 60}
    made = run("dis_lin_ucb", {"threshold": 0.3}, agent=agent, schedule=schedule, messages=DELTA)
    plain = run(
        "dis_lin_ucb", {"threshold": 0.3}, agent=agent, schedule=schedule, messages={"encoding": {"default": EIGHT}}
    )
    models = references(made, "model")
    assert len(models) > 20
    whole = [number for number, reference, _ in models if reference == 0]
    assert len(whole) == (2 if agent == JOINS else 1), "a member that has none of the earlier messages gets a whole one"
    others = [reference == before for (before, *_), (_, reference, _) in itertools.pairwise(models)]
    assert others.count(False) == len(whole) - 1, "the message before is acknowledged"
    last = slice(-5, None)
    worst = max(error for *_, error in references(plain, "model")[last])
    assert max(error for *_, error in models[last]) < 0.3 * worst, "differences are smaller, and so are errors"


def test_what_is_left_out_is_what_receivers_lack() -> None:
    """What an error feedback keeps for later: all that was meant, but for what is given up, less what has been told."""
    network = {"loss": 0.5, "latency": 0.1, "retransmission": {"max_attempts": 1}}
    spec = {"kind": "error_feedback", "of": {"kind": "stochastic", "bits": 2}}
    parts: dict[str, Any] = {"schedule": {"kind": "rounds", "turns": 60}, "network": network}
    made = run("fed_lin_ucb", {"threshold": 0.3}, messages={"encoding": {"default": spec}}, **parts)
    lacking: dict[Any, Any] = {}
    passages = {id(message.passage): message for message in made.sent if message.passage is not None}
    for message in passages.values():
        (coded,), original = message.passage.coded["b"], message.passage.original
        source = next(row.node for row, sent in zip(made.events(tr.SEND), made.sent, strict=True) if sent is message)
        link = source, message.passage.recipient, type(message)
        missing = original.b - coded.decoded  # type: ignore[attr-defined]
        lacking[link] = lacking.get(link, 0.0) + (0.0 if message.passage.lost else missing)
    assert sum(message.passage.lost for message in passages.values()) > 5
    assert made.engine.wire is not None
    ends = {link: ends["b", 0] for link, ends in made.engine.wire._senders.items()}
    assert ends.keys() == lacking.keys()
    for link, end in ends.items():
        assert end._left_out == pytest.approx(lacking[link], abs=1e-9)  # type: ignore[attr-defined]


def test_bandwidth_in_bits_uses_the_bits_that_are_sent() -> None:
    """An upload of 9 + 3 numbers of 16 bits, 3 agents: over a link of 96 bits per unit it takes 2 units, not 8."""

    def first(spec: str) -> float:
        network = {"bandwidth": {"bits": 96.0}}
        made = run("fed_lin_ucb", {}, network=network, messages={"encoding": {"default": spec}})
        sent = next(row for row in made.events(tr.SEND) if row.scalars)
        return next(row.time for row in made.events(tr.DELIVER) if row.message == sent.message) - sent.time

    assert (first("float16"), first("float64")) == (2.0, 8.0)


def test_repeated_copies_cost_their_bits_again() -> None:
    totals = run("fed_lin_ucb", {}, network=LOSSY, messages={"encoding": {"default": "float16"}}).result.totals
    assert totals["wire_bits"] == 16 * totals["wire_scalars"] > totals["bits"] == 16 * totals["scalars"]


def test_draws_are_those_of_a_node_and_number_and_nobody_elses() -> None:
    """An encoding of models alone leaves uploads, and all that others draw, as they are."""
    kinds = {"upload": {"b": EIGHT}}
    one = run("dis_lin_ucb", {"threshold": 1e9}, messages={"encoding": {"kinds": kinds}})
    assert one.result.fingerprint == run("dis_lin_ucb", {"threshold": 1e9}).result.fingerprint
    twice = [run("dis_lin_ucb", {}, messages={"encoding": {"default": EIGHT}}).result.fingerprint for _ in range(2)]
    assert twice[0] == twice[1]


def test_a_damaged_matrix_is_shifted_by_what_is_needed_and_no_more() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(2, 5))
    damaged = rows.T @ rows + 0.1 * rng.normal(size=(5, 5))
    repaired = semidefinite(damaged)
    shift = repaired - 0.5 * (damaged + damaged.T)
    eigenvalues = np.linalg.eigvalsh(0.5 * (damaged + damaged.T))
    assert eigenvalues[0] < 0
    assert np.allclose(shift, -eigenvalues[0] * np.eye(5))
    assert np.linalg.eigvalsh(repaired)[0] > -1e-12
    sound = rows.T @ rows + np.eye(5)
    assert np.array_equal(semidefinite(sound), 0.5 * (sound + sound.T))
    assert semidefinite(np.array([3.0, -1.0, 0.0])).tolist() == [4.0, 0.0, 1.0]  # of a diagonal matrix


def test_a_gram_has_other_entries_in_the_same_form() -> None:
    made = Gram(np.ones((1, 2))).with_entries(np.eye(2))
    assert np.array_equal(made.dense(), np.eye(2))


def test_a_plain_wire_is_none() -> None:
    assert MessagesConfig().plain
    assert not MessagesConfig.model_validate({"counting": "packed"}).plain
    assert not MessagesConfig.model_validate({"counting": "packed"}).lossy


@pytest.mark.parametrize(("name", "field"), [("bpe", "RewardSums.sums"), ("duets", "InducingSet.points")])
def test_what_all_nodes_conclude_the_same_from_must_be_exact(name: str, field: str) -> None:
    """Server and agents trim the active set by the same message, and then speak of points by their place in it."""
    half: dict[str, Any] = {"default": "float16"}
    with pytest.raises(UnsupportedScenario, match=f"nodes of {name} look arms up by {field}, or must conclude"):
        run(name, {}, messages={"encoding": half})
    exact = dict.fromkeys(("points", "moment", "weights", "gram"), "float64")
    half["kinds"] = dict.fromkeys(("RewardSums", "EpochModel", "InducingSet"), exact)
    assert run(name, {}, messages={"encoding": half}).result.rounds > 0


NAMES = sorted(name for name, entry in registry().algorithms.items() if not sends_nothing(name, {}))
OPTIONS: dict[str, dict[str, Any]] = {
    "fn_ucb": {"width": 4, "diagonal": True},
    "async_kernel_ucb": {"repeats": "drop", "threshold": 0.1},
}


@every("name", NAMES)
@pytest.mark.parametrize("default", ["float16", {"kind": "stochastic", "bits": 4}])
def test_on_fixed_arms_an_encoding_is_refused_or_works(name: str, default: Any) -> None:
    needs, options = algorithm(name).needs, OPTIONS.get(name, {})
    where: dict[str, Any] = {} if on_graph(name) or needs.problems else {"problem": FIXED_PROBLEM}
    more: dict[str, Any] = {"seed": 1, "schedule": next(iter(schedules_of(name).values())), **where}
    try:
        turns, why = run_anywhere(name, options, messages={"encoding": {"default": default}}, **more).result.turns, ""
    except UnsupportedScenario as refused:
        turns, why = 0, str(refused)
    assert turns or (needs.exact and "must arrive as it was sent; give it float64" in why), why
