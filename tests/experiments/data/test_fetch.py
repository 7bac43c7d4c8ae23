import functools
import hashlib
import http.server
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from coband.simulator.experiments.data.fetch import FetchError, checksum, fetch, fetch_dataset, listing
from coband.simulator.problems.datasets import DATASETS, ClassificationDataset, DataError
from tests.data_files import data_file
from tests.problems.files import write_magic, write_yelp

pytest.importorskip("pooch", reason="downloads need the extra `data`")


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, notes what was asked for."""

    asked: list[str]

    def log_message(self, format: str, *args: object) -> None:
        self.asked.append(self.path)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ClassificationDataset, list[str]]]:
    """The magic dataset of a server on this machine, and the list of requests to it."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "site").mkdir()
    file = write_magic(tmp_path / "site")
    asked: list[str] = []
    handler = functools.partial(type("Handler", (Quiet,), {"asked": asked}), directory=str(file.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}/magic04.data"
        yield replace(DATASETS["magic"], url=url, sha256=checksum(file), size=file.stat().st_size), asked
        server.shutdown()
        thread.join()


def test_a_download_is_verified_and_not_repeated(site: tuple[ClassificationDataset, list[str]], tmp_path: Path) -> None:
    dataset, asked = site
    place = tmp_path / "new" / "data"
    path = fetch_dataset(dataset, place)
    assert path == place / "magic04.data"
    assert checksum(path) == dataset.sha256
    assert fetch_dataset(dataset, place) == path
    assert len(asked) == 1


def test_another_file_of_that_name_is_replaced(site: tuple[ClassificationDataset, list[str]], tmp_path: Path) -> None:
    (tmp_path / "magic04.data").write_text("stale")
    assert checksum(fetch_dataset(site[0], tmp_path)) == site[0].sha256


def test_a_wrong_checksum_keeps_nothing(site: tuple[ClassificationDataset, list[str]], tmp_path: Path) -> None:
    place = tmp_path / "data"
    wrong = replace(site[0], sha256="0" * 64)
    with pytest.raises(
        FetchError, match=r"^dataset 'magic' could not be downloaded from http://127.* hash of downloaded file "
    ):
        fetch_dataset(wrong, place)
    assert list(place.iterdir()) == []


def test_a_failed_download_keeps_nothing_but_what_was_there(
    site: tuple[ClassificationDataset, list[str]], tmp_path: Path
) -> None:
    place = tmp_path / "data"
    place.mkdir()
    (place / "magic04.data").write_text("mine")
    gone = replace(site[0], url=site[0].url.replace("magic04", "absent"))
    with pytest.raises(FetchError, match=r"404.*Nothing was kept\. Try again, or save the file by hand as .*magic04"):
        fetch_dataset(gone, place)
    assert [(path.name, path.read_text()) for path in place.iterdir()] == [("magic04.data", "mine")]


def test_no_server(tmp_path: Path, site: tuple[ClassificationDataset, list[str]]) -> None:
    nobody = replace(site[0], url="http://127.0.0.1:9/magic04.data")
    with pytest.raises(FetchError, match=r"^dataset 'magic' could not be downloaded from http://127.0.0.1:9/magic04"):
        fetch_dataset(nobody, tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_a_place_that_is_a_file(tmp_path: Path, site: tuple[ClassificationDataset, list[str]]) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FetchError, match="could not be downloaded"):
        fetch_dataset(site[0], tmp_path / "file")


def test_without_pooch_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(FetchError, match=r"pip install 'coband\[data\]'"):
        fetch("magic", tmp_path)


def test_unknown_names(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="did you mean magic"):
        fetch("magik", tmp_path)


def test_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [(s.dataset.name, s.state, s.path) for s in listing(tmp_path / "absent")] == [
        ("magic", "absent", None),
        ("mushroom", "absent", None),
        ("shuttle", "absent", None),
        ("movielens", "absent", None),
        ("yelp", "absent", None),
    ]
    path = write_magic(tmp_path)
    monkeypatch.setenv("COBAND_DATA", str(tmp_path))
    (tmp_path / "yelp").mkdir()
    yelp = write_yelp(tmp_path / "yelp")
    assert [(s.dataset.name, s.state, s.path) for s in listing() if s.path is not None] == [
        ("magic", "differs", path),
        ("yelp", "present", yelp),
    ]


def test_the_real_files_have_the_official_checksums() -> None:
    directory = data_file("magic/magic04.data").parents[1]
    assert [s.state for s in listing(directory) if s.dataset.name in DATASETS] == ["verified"] * 3
    assert fetch("magic", directory / "magic") == directory / "magic" / "magic04.data"


def test_checksum(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    assert checksum(tmp_path / "f") == hashlib.sha256(b"abc").hexdigest()


def test_packed_files_are_not_downloaded(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"packed files: get them from https://.*shuttle.trn and shuttle.tst in"):
        fetch("shuttle", tmp_path)


@pytest.mark.parametrize(
    ("name", "file"), [("movielens", "ratings.csv"), ("yelp", "yelp_academic_dataset_review.json")]
)
def test_ratings_are_left_to_the_user_to_get(tmp_path: Path, name: str, file: str) -> None:
    with pytest.raises(FetchError, match=rf"packed files: get them from https://.*save {file} in {tmp_path}/{name}\."):
        fetch(name, tmp_path)


def test_a_dataset_in_two_files_is_verified_as_a_whole(tmp_path: Path) -> None:
    source = data_file("shuttle/shuttle.trn")
    for name in ("shuttle.trn", "shuttle.tst"):
        (tmp_path / name).write_bytes((source.parent / name).read_bytes())
    assert listing(tmp_path)[2].state == "verified"
    (tmp_path / "shuttle.tst").write_text("1 2 3 4 5 6 7 8 9 1\n")
    assert listing(tmp_path)[2].state == "differs"
