import functools
import gzip
import hashlib
import http.server
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from coband.extensions.data.fetch import FetchError, fetch, fetch_dataset, fetch_graph, listing
from coband.simulator.experiments.runs.code_version import file_sha256
from coband.simulator.problems.datasets import DATASETS, GRAPH_DATASETS, ClassificationDataset, DataError, GraphDataset
from tests.data_files import data_file
from tests.problems.files import write_magic, write_yelp

pytest.importorskip("pooch", reason="downloads need the extra `data`")


class Quiet(http.server.SimpleHTTPRequestHandler):
    asked: list[str]

    def log_message(self, format: str, *args: object) -> None:
        self.asked.append(self.path)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[str]]]:
    """The address of a server of the files in ``site``, and the list of requests to it."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "site").mkdir()
    asked: list[str] = []
    handler = functools.partial(type("Handler", (Quiet,), {"asked": asked}), directory=str(tmp_path / "site"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()
        thread.join()


@pytest.fixture
def site(server: tuple[str, list[str]], tmp_path: Path) -> tuple[ClassificationDataset, list[str]]:
    """The magic dataset of a server on this machine, and the list of requests to it."""
    address, asked = server
    file = write_magic(tmp_path / "site")
    size = file.stat().st_size
    return replace(DATASETS["magic"], url=f"{address}/magic04.data", sha256=file_sha256(file), size=size), asked


def test_a_download_is_verified_and_not_repeated(site: tuple[ClassificationDataset, list[str]], tmp_path: Path) -> None:
    dataset, asked = site
    place = tmp_path / "new" / "data"
    path = fetch_dataset(dataset, place)
    assert path == place / "magic04.data"
    assert file_sha256(path) == dataset.sha256
    assert fetch_dataset(dataset, place) == path
    assert len(asked) == 1


def test_another_file_of_that_name_is_replaced(site: tuple[ClassificationDataset, list[str]], tmp_path: Path) -> None:
    (tmp_path / "magic04.data").write_text("stale")
    assert file_sha256(fetch_dataset(site[0], tmp_path)) == site[0].sha256


def test_a_wrong_checksum_keeps_nothing(site: tuple[ClassificationDataset, list[str]], tmp_path: Path) -> None:
    place = tmp_path / "data"
    wrong = replace(site[0], sha256="0" * 64)
    said = r"^dataset 'magic' could not be downloaded from http://127.* hash of downloaded file "
    with pytest.raises(FetchError, match=said):
        fetch_dataset(wrong, place)
    assert list(place.iterdir()) == []


def test_a_failed_download_changes_nothing(site: tuple[ClassificationDataset, list[str]], tmp_path: Path) -> None:
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
        ("ego-facebook", "absent", None),
        ("musae-twitch", "absent", None),
        ("as-733", "absent", None),
    ]
    path = write_magic(tmp_path)
    monkeypatch.setenv("COBAND_DATA", str(tmp_path))
    (tmp_path / "yelp").mkdir()
    yelp = write_yelp(tmp_path / "yelp")
    graph = tmp_path / "as20000102.txt"
    graph.write_text("0 1\n")
    expected = [("magic", "differs", path), ("yelp", "present", yelp), ("as-733", "differs", graph)]
    assert [(s.dataset.name, s.state, s.path) for s in listing() if s.path is not None] == expected


def test_the_real_files_have_the_official_checksums() -> None:
    directory = data_file("magic/magic04.data").parents[1]
    assert [s.state for s in listing(directory) if s.dataset.name in DATASETS] == ["verified"] * 3
    assert fetch("magic", directory / "magic") == directory / "magic" / "magic04.data"


@pytest.mark.parametrize("name", GRAPH_DATASETS)
def test_the_real_graphs_have_the_published_nodes_and_links(name: str) -> None:
    graph = GRAPH_DATASETS[name]
    file = data_file(f"{name}/{graph.file}")
    assert {s.dataset.name: s.state for s in listing(file.parents[1])}[name] == "complete"
    assert fetch(name, file.parent) == file  # which is not downloaded


LINKS = "# a graph\n0 1\n1 2\n2 2\n"


@pytest.fixture(params=["gzip", "zip"])
def graph(server: tuple[str, list[str]], tmp_path: Path, request: pytest.FixtureRequest) -> GraphDataset:
    """A graph of three nodes on a server, packed alone or with other files."""
    small = replace(GRAPH_DATASETS["as-733"], nodes=3, links=2, file="links.txt")
    if request.param == "gzip":
        (tmp_path / "site/links.txt.gz").write_bytes(gzip.compress(LINKS.encode()))
        return replace(small, url=f"{server[0]}/links.txt.gz")
    with zipfile.ZipFile(tmp_path / "site/all.zip", "w") as archive:
        archive.writestr("all/links.txt", LINKS)
        archive.writestr("all/other.txt", "0 1\n")
    return replace(small, url=f"{server[0]}/all.zip", member="all/links.txt")


def test_a_graph_is_unpacked_once(graph: GraphDataset, server: tuple[str, list[str]], tmp_path: Path) -> None:
    place = tmp_path / "new/data"
    assert fetch_graph(graph, place) == place / "links.txt"
    assert [(path.name, path.read_text()) for path in place.iterdir()] == [("links.txt", LINKS)]
    assert fetch_graph(graph, place) == place / "links.txt"
    assert len(server[1]) == 1


def test_another_graph_of_that_name_is_replaced(graph: GraphDataset, tmp_path: Path) -> None:
    (tmp_path / "links.txt").write_text("7 8\n")
    assert fetch_graph(graph, tmp_path).read_text() == LINKS


def test_a_graph_that_is_not_the_published_one_is_not_kept(graph: GraphDataset, tmp_path: Path) -> None:
    place = tmp_path / "data"
    place.mkdir()
    (place / "links.txt").write_text("mine")
    for changed, message in (
        (replace(graph, links=9), r"it has 3 nodes and 2 links, not 3 and 9\. Nothing was kept\. Try again, or save"),
        (replace(graph, url=graph.url.replace(".gz", ".old").replace(".zip", ".old")), "404"),
    ):
        with pytest.raises(FetchError, match=rf"^dataset 'as-733' could not be downloaded from http.*{message}"):
            fetch_graph(changed, place)
        assert [(path.name, path.read_text()) for path in place.iterdir()] == [("links.txt", "mine")]


def test_a_broken_archive_of_a_graph_is_not_kept(graph: GraphDataset, tmp_path: Path) -> None:
    for file in (tmp_path / "site").iterdir():
        file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(FetchError, match=r"^dataset 'as-733' could not be downloaded from http"):
        fetch_graph(graph, tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_an_archive_without_the_graph(graph: GraphDataset, tmp_path: Path) -> None:
    if graph.member is not None:
        said = r"^dataset 'as-733' could not be downloaded from http.*: the archive has no all/gone.txt\."
        with pytest.raises(FetchError, match=said):
            fetch_graph(replace(graph, member="all/gone.txt"), tmp_path / "data")
        assert list((tmp_path / "data").iterdir()) == []


def test_checksum(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    assert file_sha256(tmp_path / "f") == hashlib.sha256(b"abc").hexdigest()


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
