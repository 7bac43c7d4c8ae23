"""Communication counts of every quick scenario: a counts lock, rewritten on purpose by ``make golden``."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from coband.simulator.experiments.counts.counting import Counts, LockFile, count
from tests.data_files import DATA
from tests.problems.files import write_yelp

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "tests" / "golden_counts.json"
DATA_FILES = {
    "magic": "magic/magic04.data",
    "mushroom": "mushroom/agaricus-lepiota.data",
    "shuttle": "shuttle/shuttle.trn",
    "facebook": "ego-facebook/facebook_combined.txt",
    "twitch": "musae-twitch/musae_ENGB_edges.csv",
    "autonomous_systems": "as-733/as20000102.txt",
    "movielens": "ml-latest-small/ratings.csv",
}


def scenarios() -> list[str]:
    """All quick scenarios, relative to the repository."""
    quick = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("scenarios/**/*_quick.yaml"))
    return ["scenarios/quickstart.yaml", *quick]


def data_file(name: str) -> str | None:
    """The data file that a quick scenario needs, relative to the data directory."""
    return next((file for data, file in DATA_FILES.items() if f"/{data}_" in name), None)


def lock() -> LockFile:
    """The file; its scenarios are named from the repository."""
    return LockFile(FILE, base=ROOT)


def counts(name: str) -> Counts:
    """By label: turns, rounds and communication counts of the first replication."""
    with TemporaryDirectory() as place:
        return count(ROOT / name, settings(name, Path(place)))


def settings(name: str, place: Path) -> list[str]:
    """What says where the data file is; Yelp's, which may not be passed on, is written to ``place`` in its format."""
    if "/yelp_" in name:
        return [f"problem.data.path={write_yelp(place)}"]
    file = data_file(name)
    key = "network.topology.file" if "coop_kernel_ucb" in name else "problem.data.path"
    return [f"{key}={DATA / file}"] if file else []


def main() -> None:
    """Write the file anew; scenarios whose data are not here keep what they have."""
    kept = lock()
    for name in scenarios():
        file = data_file(name)
        if file is None or (DATA / file).is_file():
            kept.counts[name] = counts(name)
    kept.write()


if __name__ == "__main__":
    main()
