"""Algorithms that are a class, with a server in an attribute and parameters as attributes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coband
from coband.extensions.conformance import cases

WORLD = """
name: own
agents: {count: 3}
schedule: {kind: rounds, turns: 20}
problem: {kind: contextual, arms: {kind: pool, dimension: 2, size: 4}, reward: {kind: linear}, noise: 0.1}
algorithms: [{algorithm: lin_ucb}]
"""


class Sums(coband.Message):
    sums: np.ndarray = coband.payload()
    count: int = 0


class Adding(coband.Server):
    def start(self) -> None:
        self.sums = np.zeros(4)

    @coband.on(Sums)
    def add(self, news: Sums, agent: int) -> Sums:
        self.sums = self.sums + news.sums
        return Sums(sums=self.sums)


class Sharing(coband.Agent):
    """Pulls one arm after the other and shares sums of rewards. It has no wish to be good."""

    server = Adding
    period = 5
    says_pulls = True

    def start(self) -> None:
        self.turns, self.news, self.known = 0, np.zeros(4), np.zeros(4)

    def choose(self, arms: Any) -> int:
        return self.turns % len(arms)

    def observe(self, arms: Any, arm: int, reward: float) -> Any:
        self.turns += 1
        self.news[arm] += reward
        return self.begin(self.share()) if self.turns % self.period == 0 else None

    async def share(self) -> None:
        news, self.news = self.news, np.zeros(4)
        pulls = self.period if self.says_pulls else 0
        answer = await self.ask(coband.SERVER, Sums(sums=news, pulls=pulls), reply=Sums)
        if answer:
            self.known = answer.sums


class Telling(coband.Agent):
    """Tells its neighbours every reward, which nobody asked for."""

    heard = 0

    def choose(self, arms: Any) -> int:
        return 0

    def observe(self, arms: Any, arm: int, reward: float) -> None:
        self.tell(coband.NEIGHBOURS, Sums(sums=np.array([reward])))

    @coband.on(Sums)
    def listen(self, news: Sums, agent: int) -> None:
        self.heard += 1


def ran(*algorithms: Any, place: Path, workers: int = 1, **changed: Any) -> coband.Run:
    return coband.run(WORLD, algorithms=list(algorithms), workers=workers, out=place / "run", **changed)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_class_runs_beside_others_and_its_variants_are_named_by_what_differs(workers: int, tmp_path: Path) -> None:
    run = ran(Sharing, Sharing.with_(period=2), "dis_lin_ucb", place=tmp_path, workers=workers)
    assert run.labels == ["Sharing", "Sharing period=2", "dis_lin_ucb"]
    scalars = run.results.set_index("label").scalars
    assert scalars["Sharing"] == 3 * 4 * 2 * 4  # agents * exchanges * (up and down) * size
    assert scalars["Sharing period=2"] == 3 * 10 * 2 * 4
    assert run.ledger[run.ledger.label == "Sharing"].kind.tolist() == ["Sums", "Sums"]


def test_parameters_come_from_a_scenario_too(tmp_path: Path) -> None:
    entry = {"algorithm": Sharing, "label": "often", "period": 10}
    assert ran(entry, place=tmp_path).results.scalars.tolist() == [3 * 2 * 2 * 4]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            lambda: ran(type("Half", (coband.Agent,), {}), place=Path()),
            "Half has no method choose and no observe; write",
        ),
        (lambda: Sharing.with_(perod=2), "Sharing has no parameter 'perod'; did you mean period"),
        (
            lambda: ran({"algorithm": Sharing, "period": "two"}, place=Path()),
            "'two' is not allowed: must be a whole number",
        ),
    ],
)
def test_mistakes_are_said(given: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((coband.PluginError, coband.ScenarioError), match=said):
        given()


def test_pulls_are_accounted_for_where_messages_say_them(tmp_path: Path) -> None:
    with pytest.warns(coband.RunWarning, match="no message says by `pulls=`"):
        ran(Sharing.with_(says_pulls=False), place=tmp_path / "silent")

    class Boasting(Sharing):
        """Says more pulls than it made."""

        async def share(self) -> None:
            await self.ask(coband.SERVER, Sums(sums=self.news, pulls=2 * self.period), reply=Sums)

    with pytest.warns(coband.RunWarning, match="broke off"):
        run = ran(Boasting, place=tmp_path / "boasting")
    assert "agent 0 sends a 'Sums' with pulls=10, but only 5 of its pulls are not sent yet" in run.failures.error[0]


def test_a_class_may_go_on_from_another_and_its_attributes_may_change_between_runs(tmp_path: Path) -> None:
    class Further(Sharing):
        rate: float = 1

        def observe(self, arms: Any, arm: int, reward: float) -> Any:
            return super().observe(arms, arm, reward)

    assert Further.with_(rate=0.5)["rate"] == 0.5
    for period in (5, 2):
        Further.period = period
        run = ran(Further, {"algorithm": Further, "label": "Other", "rate": 0.5}, place=tmp_path / str(period))
        assert run.results.scalars.tolist() == [3 * (20 // period) * 2 * 4] * 2
    Further.server = type("Two", (Adding,), {"period": 3})
    with pytest.raises(coband.PluginError, match="period is 2 in Further and 3 in its server"):
        Further.with_(rate=2)


def test_what_is_begun_need_not_be_returned(tmp_path: Path) -> None:
    class Forgetful(Sharing):
        def observe(self, arms: Any, arm: int, reward: float) -> None:
            super().observe(arms, arm, reward)

    run = ran(Forgetful, place=tmp_path, set={"network.latency": 0.5, "network.loss": 0.2})
    assert run.results.scalars.tolist() == [3 * 4 * 2 * 4]
    assert cases(Forgetful)


def test_a_class_without_a_server_talks_to_its_neighbours(tmp_path: Path) -> None:
    ring = {"network.topology": "ring"}
    run = ran(Telling, place=tmp_path, set=ring)
    assert run.results.scalars.tolist() == [3 * 20 * 2]


def test_a_cell_that_runs_again_replaces_its_class(tmp_path: Path) -> None:
    for turns in (4, 2):
        made = type("Cell", (Sharing,), {"period": turns, "__module__": __name__})
        assert ran(made, place=tmp_path / str(turns)).results.scalars.tolist() == [3 * (20 // turns) * 2 * 4]


class TheirUcb:
    """As somebody writes it who knows nothing of coband."""

    def __init__(self, arms: int, seed: int) -> None:
        self.counts, self.sums, self.rng = np.zeros(arms), np.zeros(arms), np.random.default_rng(seed)

    def select(self) -> int:
        fresh = np.flatnonzero(self.counts == 0)
        if len(fresh):
            return int(self.rng.choice(fresh))
        return int(np.argmax(self.sums / self.counts + np.sqrt(2 * np.log(self.counts.sum()) / self.counts)))

    def update(self, arm: int, reward: float) -> None:
        self.counts[arm] += 1
        self.sums[arm] += reward


class Mabwiser:
    def predict(self) -> int:
        return 1

    def partial_fit(self, decisions: list[int], rewards: list[float]) -> None:
        assert (decisions, len(rewards)) == ([1], 1)


class SmPyBandits:
    def __init__(self, nbArms: int) -> None:
        self.last = nbArms - 1

    def startGame(self) -> None:  # noqa: N802
        self.begun = True

    def choice(self) -> int:
        return self.last if self.begun else -1

    def getReward(self, arm: int, reward: float) -> None:  # noqa: N802
        assert arm == 3


def test_a_policy_of_another_library_runs_as_agents_that_learn_alone(tmp_path: Path) -> None:
    algorithms = [
        *map(coband.plain, (TheirUcb, Mabwiser, SmPyBandits)),
        coband.plain(lambda: TheirUcb(4, 1), name="Made"),
    ]
    for place in ("one", "two"):
        run = ran(*algorithms, place=tmp_path / place)
        assert run.results.scalars.tolist() == [0] * 4
        assert run.results.turns.tolist() == [60] * 4
        prints = run.results.fingerprint.tolist()
        assert len({*prints}) == 4
    assert prints == ran(*algorithms, place=tmp_path / "three").results.fingerprint.tolist()
    with pytest.raises(coband.PluginError, match="Path has no method select or no method update"):
        coband.plain(Path)
