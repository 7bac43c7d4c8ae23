"""The figure of liars, privacy and bits."""

from pathlib import Path

from coband.simulator.analysis.report import data, tables
from coband.simulator.analysis.report.adversity import adversity_figure, first_lies
from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.experiments.store.store import open_run
from tests.analysis.report.made import run

SCENARIO = """
name: lies
seed: 5
replications: 2
agents: {count: 5}
schedule: {kind: rounds, turns: 20}
network: {latency: 0.1}
problem: {kind: contextual, arms: {kind: ball, dimension: 3, count: 5}, reward: {kind: linear}, noise: 0.1}
messages: {privacy: {mechanism: gaussian, sigma: 4, leak: allow}}
adversaries:
  - {agents: [1, 3], behaviour: {kind: sign_flip, scale: 3}, start: 5}
algorithms:
  - {algorithm: dis_lin_ucb, label: Lin, threshold: 1}
  - {algorithm: n_kernel_ucb, label: Alone}
"""


def test_who_lied_when_what_was_spent_and_bits(tmp_path: Path) -> None:
    with open_run(run(tmp_path / "run", scenario=SCENARIO)) as made:
        analysis = Analysis(data.load([made]))
        lin, alone = analysis.contenders
        found = first_lies(lin)
        assert {lie.agent for lie in found} == {1, 3}
        assert {lie.behaviour for lie in found} == {"sign_flip"}
        assert all(lie.time >= 5.0 for lie in found)
        assert first_lies(alone) == []
        figure = adversity_figure(analysis)
        strip, spent, bits = figure.axes
        ticks = [len(one.get_positions()) for one in strip.collections]
        assert sum(ticks) == len(found)
        assert [text.get_text() for text in strip.get_yticklabels()] == ["agent 1", "agent 3"]
        record = lin.records[0]
        assert spent.lines[0].get_ydata()[-1] == sum(lin.values("epsilon").values()) / 2
        assert sum(bar.get_width() for bar in bits.patches) == sum(lin.values("gram_bits").values()) / 2 + (
            sum(lin.values("moment_bits").values()) / 2
        )
        (row, *_) = [row for row in tables.liars(analysis).rows if row[:2] == ("Lin", "0")]
        assert row[2:6] == ("1, 3", str(len(found)), f"{found[0].time:g}", f"{found[-1].time:.5g}")
        assert row[-1] == tables.number(round(record["honest_regret_per_agent"], 3))


def test_no_figure_where_all_are_honest_and_nothing_is_private(tmp_path: Path) -> None:
    honest = "\n".join(line for line in SCENARIO.splitlines() if "sign_flip" not in line and "privacy" not in line)
    with open_run(run(tmp_path / "run", scenario=honest.replace("adversaries:\n", ""))) as made:
        assert adversity_figure(Analysis(data.load([made]))) is None


def test_of_nodes_that_are_private_by_themselves_no_course_is_known(tmp_path: Path) -> None:
    """Where the run has an epsilon of each agent alone, the figure has nothing to draw, and says so."""
    text = SCENARIO.replace("messages:", "# ").replace("adversaries:", "# ").replace("  - {agents:", "# ")
    own = text.replace("dis_lin_ucb, label: Lin, threshold: 1", "fed_ucb, label: Lin")
    with open_run(run(tmp_path / "run", scenario=own)) as made:
        analysis = Analysis(data.load([made]))
        lin, _ = analysis.contenders
        assert all("epsilon" in agent for record in lin.records.values() for agent in record["agents"])
        assert adversity_figure(analysis) is None
