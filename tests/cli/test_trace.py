"""``coband trace``: what users see."""

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from coband import load
from coband.simulator.analysis.traces.reading import spelled
from coband.simulator.cli.options import BadInput
from coband.simulator.cli.trace import parse_interval
from coband.simulator.experiments.store.store import StoreError, open_run
from tests.analysis.traces import runs
from tests.cli.fake_cli import Program
from tests.experiments.runs.fake_runs import ROOT, perform


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trace") / "run"
    perform(out)
    return out


def test_show(coband: Program, run: Path) -> None:
    status, output, _ = coband("trace", "show", run, "--label", "Seldom", "--replication", 1, "--limit", 3)
    lines = output.splitlines()
    assert (status, lines[0], len(lines)) == (0, "Seldom, replication 1", 5)
    assert lines[1].split()[:6] == ["seq", "time", "event", "node", "peer", "kind"]
    assert lines[3].split() == ["1", "1", "choose", "agent", "0", *[".", ".", ".", "0", "0", ".", ".", "arm", "1"]]


def test_show_chosen_events_as_json(coband: Program, run: Path) -> None:
    options = ["--event", "deliver", "--node", 2, "--kind", "mean", "--time", "4..6", "--limit", 2, "--json"]
    status, output, _ = coband("trace", "show", run / "run.sqlite", *options)
    events = [json.loads(line) for line in output.splitlines()]
    assert (status, len(events)) == (0, 2)
    assert {(event["event"], event["node"], event["kind"], event["peer"]) for event in events} == {
        ("deliver", "agent 2", "mean", "server")
    }


def test_stats(coband: Program, run: Path) -> None:
    status, output, _ = coband("trace", "stats", run, "--by", "kind", "--label", "Often")
    assert status == 0
    assert [line.split() for line in output.splitlines()[2:]] == [
        ["Often", "mean", "1,200", "200", "1,000", "1,000", "1,000"],
        ["Often", "sums", "400", "200", "200", "400", "200"],
    ]
    status, output, _ = coband("trace", "stats", run, "--by", "kind,node", "--label", "Often", "--json")
    found = [json.loads(line) for line in output.splitlines()]
    assert status == 0
    counts = {"events": 200, "sends": 200, "messages": 1000, "scalars": 1000, "deliveries": 0}
    assert {"label": "Often", "kind": "mean", "node": "server", **counts} in found


def test_stats_say_that_jobs_did_not_finish(coband: Program, tmp_path: Path) -> None:
    perform(tmp_path / "broken", replications=2, mischief=((1, "error"),), labels=("Often",))
    status, output, errors = coband("trace", "stats", tmp_path / "broken")
    assert status == 0
    assert errors == "note: 1 of 2 jobs did not finish; their events until then count\n"
    assert "send" in output


@pytest.mark.parametrize("loss", [0, 0.3])
def test_verify_knows_copies_that_links_double(coband: Program, tmp_path: Path, loss: float) -> None:
    faults = ("network.duplicate=0.5", f"network.loss={loss}", "network.transport=datagram", "network.heals=20")
    run = runs.perform(runs.GRAPH, tmp_path / "run", *faults, "algorithms.Coop.hops=1")
    status, output, _ = coband("trace", "verify", run)
    assert (status, output.endswith(", ok\n")) == (0, True), output


def test_verify_says_what_it_could_not_check(coband: Program, run: Path, tmp_path: Path) -> None:
    status, output, _ = coband("trace", "verify", run)
    assert (status, output.splitlines()[0]) == (0, "Often, replication 0: 1,600 events, ok")
    perform(tmp_path / "off", replications=1, trace="off", labels=("Often",))
    perform(tmp_path / "broken", replications=1, mischief=((0, "negative"),), labels=("Often",))
    expected = (0, "Often, replication 0: the run kept no trace (trace: off), so there are no events to compare with\n")
    assert coband("trace", "verify", tmp_path / "off")[:2] == expected
    status, output, _ = coband("trace", "verify", tmp_path / "broken")
    assert status == 0
    assert "consistent as far as it goes; partial trace of a job that is violated" in output


def test_verify_ends_with_status_1_on_a_difference(coband: Program, tmp_path: Path) -> None:
    perform(tmp_path / "run", replications=1, labels=("Often",))
    connection = sqlite3.connect(tmp_path / "run" / "run.sqlite")
    with connection:
        connection.execute("UPDATE events SET value = 0.25 WHERE seq = 2")
    connection.close()
    status, output, _ = coband("trace", "verify", tmp_path / "run")
    assert status == 1
    assert output.startswith("Often, replication 0: the fingerprint of the stored events is ")


def test_nodes_are_those_of_the_run(run: Path) -> None:
    with open_run(run) as stored:
        found = [spelled(text, stored.jobs) for text in ("server", "2", "agent 2", " agent2", None)]
        assert found == ["server", "agent 2", "agent 2", "agent 2", None]
        said = r"--node '7' is not a node of this run; there is server, agent 0 to agent 4\."
        with pytest.raises(StoreError, match=said):
            spelled("7", stored.jobs)


def test_devices_have_names_and_those_who_hold_others_up_are_ranked(coband: Program, tmp_path: Path) -> None:
    (tmp_path / "devices.csv").write_text("who,speed\n" + "".join(f"phone{n},{n + 1}\n" for n in range(4)))
    devices = f"{{kind: file, file: {tmp_path}/devices.csv, order: in_order, columns: {{name: who, speed: speed}}}}"
    alike = "agents.compute=8", "agents.stragglers=null"
    out = runs.perform(runs.STAR, tmp_path / "run", f"agents.population={devices}", *alike, only=("Sync",))
    assert load(out).agents["name"].tolist() == ["phone0", "phone1", "phone2", "phone3"]
    assert "agent 0 (phone0)  .                 .  " in coband("trace", "show", out, "--event", "turn", "--limit", 1)[1]
    _, output, _ = coband("trace", "waits", out)
    (slowest, time, _), *others = re.findall(r"^Sync +(agent .*\)|server) +([\d.]+) +(\d+)$", output, re.M)
    assert (slowest, float(time) > max(float(one[1]) for one in others)) == ("agent 0 (phone0)", True)
    assert re.search(r"at agent \d \(phone\d\)", load(out).why(load(out).events("event = 'resume'").iloc[0]).sentence)
    assert "agent 0 (phone0)" not in coband("trace", "show", out, "--json")[1]


def test_every_number_is_explained(coband: Program, run: Path) -> None:
    _, output, _ = coband("trace", "show", run, "--label", "Often", "--replication", 0, "--limit", 60)
    title, *lines = output.splitlines()[1:]
    at = title.index("meaning")
    said = {line.split()[2]: line[at:] for line in lines}
    assert {name: re.sub(r"[\d.-]+$", "#", text) for name, text in said.items()} == {
        "turn": "turn #",
        "choose": "arm #",
        "reward": "reward #",
        "trigger": "noted: #",
        "send": "to 5 receivers",
        "deliver": "copy #",
        "model": "",
    }
    assert len(lines) == 60, "no event has a second line"


def test_intervals() -> None:
    assert parse_interval("1e1..20") == (10.0, 20.0)
    assert parse_interval("..2") == (None, 2.0)
    assert parse_interval("3..") == (3.0, None)
    with pytest.raises(BadInput):
        parse_interval("..")


ONE = ["--label", "Often", "--replication", 0]


def test_why(coband: Program, run: Path) -> None:
    _, output, _ = coband("trace", "show", run, *ONE, "--event", "deliver", "--node", 3, "--limit", 1, "--json")
    event = json.loads(output)
    status, output, _ = coband("trace", "why", run, event["seq"], *ONE)
    lines = output.splitlines()
    assert (status, lines[0]) == (0, "Often, replication 0")
    words = [line.split()[2] for line in lines[2:-1] if len(line.split()) > 1]  # a detail has a line of its own
    assert words == ["deliver", "send", "deliver", "send", "trigger", "reward", "choose", "turn"]
    assert lines[-1] == f"event {event['seq']} goes back to turn 2 of agent 0: 2 messages and 0 time units before."
    status, output, _ = coband("trace", "why", run, event["seq"], *ONE, "--json")
    assert [json.loads(line)["event"] for line in output.splitlines()] == words


def test_show_one_message(coband: Program, run: Path) -> None:
    status, output, _ = coband("trace", "show", run, "--message", 5, *ONE)
    lines = output.splitlines()
    assert (status, [line.split()[2] for line in lines[2:-1]]) == (0, ["send", *["deliver"] * 5])
    assert lines[-1] == "mean, 1 scalar, from server to everyone: 5 copies, 5 delivered; 0 time units on the way."
    _, output, _ = coband("trace", "show", run, *ONE, "--message", 5, "--event", "deliver", "--limit", 3, "--json")
    assert [json.loads(line)["message"] for line in output.splitlines()] == [5] * 3


def test_diff(coband: Program, run: Path, tmp_path: Path) -> None:
    status, output, _ = coband("trace", "diff", run, run / "run.sqlite", "--label", "Often")
    expected = (0, "Often, replication 0: the same, 1,600 events\nOften, replication 1: the same, 1,600 events\n")
    assert (status, output) == expected
    status, output, _ = coband(
        "trace", "diff", run, run, "--label", "Often", "--other-label", "Seldom", "--replication", 1
    )
    lines = output.splitlines()
    assert status == 1
    assert lines[0] == (
        "Often and Seldom, replication 1: the first difference is at agent 0 at time 2, after 30 common events"
    )
    assert lines[2].split()[:4] == ["A", "18", "2", "trigger"]
    status, output, _ = coband("trace", "diff", run, run, "--label", "Often", "--other-label", "Seldom", "--json")
    first = json.loads(output.splitlines()[0])
    assert (first["same"], first["common"], first["a"]["event"]) == (False, 30, "trigger")


def test_query(coband: Program, run: Path) -> None:
    sql = "SELECT label, count(*) AS n, 9e999 AS x FROM jobs GROUP BY label"
    status, output, errors = coband("trace", "query", run, sql)
    assert (status, errors) == (0, "")
    assert output.split() == ["label", "n", "x", "Often", "2", "inf", "Seldom", "2", "inf"]
    _, output, _ = coband("trace", "query", run, sql, "--json")
    assert json.loads(output.splitlines()[0]) == {"label": "Often", "n": 2, "x": None}


def test_export(coband: Program, run: Path, tmp_path: Path) -> None:
    status, output, _ = coband("trace", "show", run, *ONE, "--json")
    assert (status, len(output.splitlines())) == (0, 1600)
    status, output, _ = coband("trace", "export", run, "--format", "perfetto", "--out", "t.json")
    assert (status, output) == (0, "t.json\n")
    assert json.loads(Path("t.json").read_text())["traceEvents"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "nowhere"], "nowhere is not a run: there is no nowhere"),
        (["show", "RUN", "--label", "Ofen"], "there is no label 'Ofen' in this run; there is Often."),
        (["show", "RUN", "--kind", "means"], "there is no kind 'means' in this run; there is mean"),
        (["show", "RUN", "--node", "client 3"], "--node 'client 3' is not a node"),
        (["show", "RUN", "--time", "3"], "--time '3' is not an interval of simulated time; give A..B"),
        (["show", "RUN", "--time", "5..3"], "--time '5..3' is not an interval of simulated time; give A..B"),
        (["why", "RUN", "3"], "holds 4 jobs, each with events of its own; choose --label (Often, Seldom) and"),
        (["why", "RUN", "99999", *ONE], "Often, replication 0, has no event 99999; they go from 0 to 1599."),
        (["why", "RUN", "-1", *ONE], "-1"),
        (["why", "RUN", "x", *ONE], "'x' is not a valid integer"),
        (["show", "RUN", "--message", "9999", *ONE], "has no message 9999; they go from 0 to"),
        (["show", "RUN", "--message", "1"], "holds 4 jobs, each with events of its own; choose --label (Often,"),
        (["waits", "RUN", "--replication", "9"], "there is no replication 9 in this run; there is 0, 1."),
        (["stats", "RUN", "--by", "kind,day"], "--by 'day' is not one of 'event', 'kind', 'node', 'round'."),
        (["query", "RUN", "DELETE FROM jobs"], "only reading is allowed here"),
        (["query", "RUN", "SELECT 1", "--seconds", "0"], "--seconds"),
        (["query", "nowhere", "SELECT 1"], "nowhere is not a run"),
        (["export", "RUN", "--format", "xml"], "'xml' is not one of"),
        (
            ["export", "RUN", "--format", "parquet", "--out", "RUN/run.sqlite/place"],
            "/place cannot be written: File exists. Choose another place with --out.",
        ),
        (
            ["export", "RUN", "--format", "parquet", "--out", "RUN/run.sqlite", "--force"],
            "run.sqlite is a file of a run, which nothing replaces. Choose another place with --out.",
        ),
        (["diff", "RUN", "nowhere"], "nowhere is not a run"),
        (["whi", "RUN", "3"], "there is no command 'whi'; did you mean why?"),
    ],
)
def test_bad_input(coband: Program, run: Path, arguments: list[object], message: str) -> None:
    status, output, errors = coband("trace", *(str(word).replace("RUN", str(run)) for word in arguments))
    assert (status, output) == (2, "")
    assert message in errors
    assert "Traceback" not in errors


def test_a_run_without_a_trace_says_so(coband: Program, tmp_path: Path) -> None:
    perform(tmp_path / "off", replications=1, trace="off", labels=("Often",))
    questions = (["show"], ["stats"], ["why", 0], ["waits"], ["export", "--format", "perfetto"])
    for name, *rest in questions:
        status, _, errors = coband("trace", name, tmp_path / "off", *rest)
        assert status == 2
        assert "kept no trace (trace: off)" in errors
    assert coband("trace", "diff", tmp_path / "off", tmp_path / "off")[0] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "RUN"],
        ["export", "RUN", "--format", "perfetto"],
        ["query", "RUN", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"],
    ],
)
def test_a_closed_pager_is_no_error(run: Path, arguments: list[str]) -> None:
    words = [str(run) if word == "RUN" else word for word in arguments]
    command = [sys.executable, "-c", "from coband.simulator.cli.main import main; main()", "trace", *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_why_names_a_message_of_which_earlier_copies_were_sent(coband: Program, tmp_path: Path) -> None:
    run = runs.perform(runs.STAR, tmp_path / "run", "network.loss=0.4", "replications=1", only=("Async",))
    events = load(run).events()
    seqs = events[(events["event"] == "deliver") & (events["value"] > 1)]["seq"].tolist()
    said = [coband("trace", "why", run, seq, "--label", "Async", "--replication", 0)[1] for seq in seqs[:10]]
    assert any("(its copy 2; coband trace show --message " in text for text in said)
