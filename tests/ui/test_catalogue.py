"""Finding runs, remembering them, and choosing among them."""

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coband.simulator.ui import catalogue
from coband.simulator.ui import catalogue as module
from coband.simulator.ui.catalogue import Catalogue, Choice
from tests.experiments.runs.fake_runs import perform, started, wait_until
from tests.ui.made import changed, copies, damage


@pytest.fixture
def root(tmp_path: Path) -> Path:
    copies(tmp_path, 6)
    return tmp_path


def test_runs_are_found_the_newest_first(root: Path) -> None:
    found = Catalogue(root).entries()
    assert [entry.place for entry in found] == [f"study{i % 5}/run-{i:04d}" for i in (5, 4, 3, 2, 1, 0)]
    first = found[0]
    assert (first.kind, first.status, first.scenario, first.total, first.done) == ("run", "finished", "study0", 4, 4)
    assert (first.algorithms, first.labels, first.duration) == (("fake",), ("Often", "Seldom"), "1 min 5 s")
    assert len({entry.id for entry in found}) == 6


def test_what_does_not_change_is_read_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Path] = []
    read = catalogue.read
    monkeypatch.setattr(module, "read", lambda path, top: (reads.append(path), read(path, top))[1])
    runs = Catalogue(root)
    runs.entries()
    assert len(reads) == 6
    runs.entries()
    assert len(reads) == 6
    changed(root / "study1/run-0001", status="failed", jobs=9)
    found = {entry.place: entry for entry in runs.entries()}
    assert reads[6:] == [root / "study1/run-0001"]
    assert (found["study1/run-0001"].status, found["study1/run-0001"].total) == ("failed", 9)
    shutil.rmtree(root / "study2")
    assert len(runs.entries()) == 5


def test_a_directory_that_is_a_run_itself(root: Path) -> None:
    (entry,) = Catalogue(root / "study1/run-0001").entries()
    assert (entry.place, entry.status) == ("run-0001", "finished")


def test_damaged_stores_are_listed_as_damaged(root: Path) -> None:
    damage(root / "study0/run-0000")
    (root / "study1/run-0001/run.sqlite").write_bytes(b"no database")
    (root / "study2/run-0002/run.sqlite").unlink()
    (root / "study3/run-0003/manifest.json").write_text("{ no JSON")
    (root / "study4/run-0004/manifest.json").write_text(
        '{"status": ["x"], "jobs": "many", "started": {}, "process": -7}'
    )
    found = {entry.place[-1]: entry for entry in Catalogue(root).entries()}
    assert [found[place].status for place in "012345"] == ["damaged"] * 3 + ["unknown"] * 2 + ["finished"]
    assert found["0"].trouble == "run.sqlite is damaged"
    assert found["1"].trouble.startswith("run.sqlite cannot be read (file is not a database")
    assert found["2"].trouble == "there is no run.sqlite"
    assert (found["3"].done, found["4"].total) == (4, 4)


def test_links_in_a_circle_and_endless_manifests_break_no_list(root: Path) -> None:
    (root / "study0/run-0000/run.sqlite").unlink()
    (root / "study0/run-0000/run.sqlite").symlink_to("run.sqlite")
    (root / "study1/run-0001/manifest.json").write_text("[" * 100_000)
    (root / "study1/run-0003/manifest.json").unlink(missing_ok=True)
    (root / "study1/run-0003").mkdir(exist_ok=True)
    os.mkfifo(root / "study1/run-0003/manifest.json")  # which nobody writes to
    shutil.copy(root / "study1/run-0001/run.sqlite", root / "study1/run-0003")
    found = {entry.place[-1]: entry for entry in Catalogue(root).entries()}
    assert (found["0"].status, found["0"].trouble) == ("damaged", "there is no run.sqlite")
    assert [found[number].status for number in "125"] == ["unknown", "finished", "finished"]


def test_checks_have_a_time_limit(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damage(root / "study0/run-0000")
    monkeypatch.setattr(module, "PATIENCE", -1.0)
    runs = Catalogue(root)
    assert {entry.status for entry in runs.entries()} == {"finished"}
    assert runs.unchecked
    monkeypatch.setattr(module, "PATIENCE", 60.0)
    assert "damaged" in {entry.status for entry in runs.entries()}
    assert not runs.unchecked


def test_links_that_lead_out_are_not_followed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    shutil.move(root / "study0/run-0000/run.sqlite", outside / "run.sqlite")
    (root / "study0/run-0000/run.sqlite").symlink_to(outside / "run.sqlite")
    shutil.move(root / "study1", outside / "study1")
    (root / "study1").symlink_to(outside / "study1")
    found = {entry.place: entry for entry in Catalogue(root).entries()}
    assert found["study0/run-0000"].trouble == "run.sqlite is a link that leads out of the directory"
    assert "study1/run-0001" not in found


def test_a_run_that_goes_on_and_then_is_killed(tmp_path: Path) -> None:
    runs = Catalogue(tmp_path)
    with started(tmp_path / "on", workers=1, mischief=((1, "endless"),), turns=5000, count=1, labels=("Often",)) as it:
        wait_until(lambda: [entry.done for entry in runs.entries()] == [1], it)
        (entry,) = runs.entries()
        assert (entry.status, entry.done, entry.total) == ("running", 1, 2)
    (entry,) = runs.entries()
    assert (entry.status, entry.trouble) == ("killed", "")


def test_a_driver_elsewhere_lives_as_long_as_its_files_change(root: Path) -> None:
    run = root / "study0/run-0000"
    changed(run, status="running", host="elsewhere", process=1)
    runs = Catalogue(root)
    assert runs.find([catalogue.id_of("study0/run-0000")])[0].status == "running"
    for file in run.iterdir():
        os.utime(file, (time.time() - 3600, time.time() - 3600))
    assert runs.find([catalogue.id_of("study0/run-0000")])[0].status == "killed"
    (run / "jobs").mkdir()
    (run / "jobs/1.sqlite").touch()
    assert runs.find([catalogue.id_of("study0/run-0000")])[0].status == "running"


def test_numbers_of_a_list() -> None:
    entry = catalogue.Entry("x", Path(), "x", jobs={"finished": 2})
    assert (entry.done, entry.broken) == (2, 0)
    assert catalogue.Entry("x", Path(), "x", jobs={"failed": 1, "violated": 3}).broken == 4
    values = (0, 2**62 - 1, 2**62, -1, True, 1.0, None)
    assert [catalogue._whole(value) for value in values] == [0, 2**62 - 1, *[None] * 5]


@pytest.mark.skipif(os.name != "posix", reason="processes are looked for by signals")
def test_a_driver_here_lives_as_long_as_its_process(root: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        changed(root / "study0/run-0000", status="running", host=socket.gethostname(), process=process.pid)
        assert Catalogue(root).entries()[-1].status == "running"
        process.communicate(b"\n")
    assert Catalogue(root).entries()[-1].status == "killed"


@pytest.mark.parametrize(
    ("choice", "places"),
    [
        (Choice(), "543210"),
        (Choice(words="STUDY1"), "1"),
        (Choice(words="often run-0004"), "4"),
        (Choice(words="nowhere"), ""),
        (Choice(status="failed"), "2"),
        (Choice(algorithm="fake"), "543210"),
        (Choice(algorithm="fak"), ""),
        (Choice(scenario="study0"), "50"),
        (Choice(since="2026-01-03"), "5432"),
        (Choice(until="2026-01-02"), "10"),
        (Choice(since="2026-01-02", until="2026-01-03", words="study2"), "2"),
    ],
)
def test_choices(choice: Choice, places: str, root: Path) -> None:
    changed(root / "study2/run-0002", status="failed")
    assert "".join(entry.place[-1] for entry in choice.of(Catalogue(root).entries())) == places


def test_names_that_are_no_text(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    perform(tmp_path / name, replications=1, turns=2, count=2)
    (entry,) = Catalogue(tmp_path).entries()
    assert entry.place == name
    assert entry.id == catalogue.id_of(name)
