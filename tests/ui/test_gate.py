"""Who may see the pages, and what the answers allow a browser to do."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from coband.simulator.ui.server import Gate
from tests.every import every
from tests.experiments.runs.fake_runs import perform
from tests.ui.made import Visitor, serving

PATHS = ("/", "/run?id=x", "/report?id=x", "/compare?id=x", "/static/ui.js", "/nonsense")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("runs")
    perform(found / "one", replications=2, turns=2, count=2)
    (found.parent / "secret.txt").write_text("a secret")
    return found


@pytest.fixture(scope="module")
def visitor(root: Path) -> Iterator[Visitor]:
    with serving(root) as found:
        yield found


@every("path", PATHS)
@every("cookie", ["", "coband_1=x", "NAME=", "NAME=wrong", "NAME", "other=TOKEN", '"; NAME="TOKEN"x'])
def test_nothing_without_the_token(visitor: Visitor, path: str, cookie: str) -> None:
    text = cookie.replace("NAME", visitor.gate.cookie_name).replace("TOKEN", visitor.gate.token)
    status, headers, text = visitor.raw(path, Cookie=text)
    assert status == 403
    assert text == "Open the address that `coband ui` has printed, with its token.\n"
    assert "Set-Cookie" not in headers


@pytest.mark.parametrize("token", ["", "x", "ä", "%ff", "TOKENx"])
def test_a_wrong_token_gives_nothing(visitor: Visitor, token: str) -> None:
    from urllib.parse import quote

    address = f"/?token={quote(token.replace('TOKEN', visitor.gate.token))}"
    assert visitor.raw(address)[0] == 403


def test_the_token_gives_a_cookie_and_the_cookie_all_pages(visitor: Visitor) -> None:
    status, headers, text = visitor.raw(visitor.gate.address.partition(str(visitor.gate.port))[2])
    assert status == 200
    assert 'http-equiv="refresh" content="0;url=/"' in text
    assert visitor.gate.token not in text
    name, *properties = headers["Set-Cookie"].split("; ")
    assert name == visitor.cookie
    assert set(properties) == {"Path=/", "HttpOnly", "SameSite=Strict"}
    assert visitor.raw("/", Cookie=f"other=1; {name}; third=x")[0] == 200


def test_tokens_are_random_and_long() -> None:
    tokens = {Gate(1).token for _ in range(100)}
    assert len(tokens) == 100
    assert min(map(len, tokens)) >= 40
    assert Gate(1).token not in repr(Gate(1))


HOSTS = "evil.example evil.example:PORT 127.0.0.1 127.0.0.1:1 localhost.evil.example:PORT 0.0.0.0:PORT"


@pytest.mark.parametrize("host", ["", *HOSTS.split()])
def test_other_names_of_this_server_are_refused(visitor: Visitor, host: str) -> None:
    """As a page of the web would ask for, whose name an attacker has made to lead to this machine."""
    for cookie in ("", visitor.cookie):
        status, _, text = visitor.raw("/", Host=host.replace("PORT", str(visitor.gate.port)), Cookie=cookie)
        assert status == 403
        assert "no other name" in text


def test_two_hosts_are_refused(visitor: Visitor) -> None:
    with socket.create_connection(("127.0.0.1", visitor.gate.port)) as connection:
        host = f"Host: 127.0.0.1:{visitor.gate.port}\r\n"
        connection.sendall(f"GET / HTTP/1.1\r\n{host}{host}Cookie: {visitor.cookie}\r\n\r\n".encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "LocalHost"])
def test_its_own_names_are_taken(visitor: Visitor, host: str) -> None:
    assert visitor.raw("/", Host=f"{host}:{visitor.gate.port}", Cookie=visitor.cookie)[0] == 200


@every("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "NONSENSE"])
@every("path", ["/", "/run?id=x"])
def test_nothing_can_be_written(visitor: Visitor, method: str, path: str) -> None:
    status, headers, _ = visitor.raw(path, method, Cookie=visitor.cookie)
    assert status == 405
    assert headers["Allow"] == "GET, HEAD"


def test_head_is_get_without_the_text(visitor: Visitor) -> None:
    _, headers, text = visitor.raw("/", Cookie=visitor.cookie)
    status, same, nothing = visitor.raw("/", "HEAD", Cookie=visitor.cookie)
    assert (status, nothing) == (200, "")
    assert {**headers, "Date": ""} == {**same, "Date": ""}
    assert int(headers["Content-Length"]) == len(text.encode())


def test_no_file_changes(visitor: Visitor, root: Path) -> None:
    def files() -> dict[Path, tuple[int, int]]:
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in root.rglob("*")}

    before = files()
    for path in ("/", "/run?id=ID", "/compare?id=ID", "/report?id=ID", "/scenario?id=ID"):
        visitor(path.replace("ID", visitor.id("one")))
    assert files() == before


OUT = """
/../secret.txt /..%2fsecret.txt /static/../../secret.txt /static/..%2f..%2fpages.py /static//etc/passwd
/static/../pages.py //etc/passwd /run?id=../secret.txt /run?id=.. /run?id=/etc /report?id=one
/scenario?id=one/../../secret.txt /scenario?id=%00
"""


@every("path", OUT.split())
def test_no_path_leads_out_of_the_directory(visitor: Visitor, path: str) -> None:
    status, _, text = visitor.raw(path, Cookie=visitor.cookie)
    assert status == 404
    assert "secret" not in text
    assert "root:" not in text


def test_what_answers_allow(visitor: Visitor) -> None:
    id = visitor.id("one")
    for path in ("/", f"/run?id={id}", f"/compare?id={id}", "/nonsense", "/static/ui.css"):
        _, headers, text = visitor.raw(path, Cookie=visitor.cookie)
        policy = dict(part.partition(" ")[::2] for part in headers["Content-Security-Policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in headers
        assert "<style" not in text
        assert " style=" not in text
        assert "https://" not in text
    _, headers, _ = visitor.raw(f"/report?id={id}", Cookie=visitor.cookie)
    assert "sandbox allow-scripts" in headers["Content-Security-Policy"]
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'unsafe-inline'")


@pytest.mark.parametrize("request_", [f"GET /?{'a=1&' * 3000} HTTP/1.1", "GET http://[ HTTP/1.1"])
def test_what_cannot_be_read_is_refused(visitor: Visitor, request_: str) -> None:
    with socket.create_connection(("127.0.0.1", visitor.gate.port)) as connection:
        head = f"Host: 127.0.0.1:{visitor.gate.port}\r\nCookie: {visitor.cookie}\r\n\r\n"
        connection.sendall(f"{request_}\r\n{head}".encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 400 ")


def test_it_listens_on_loopback_alone(visitor: Visitor) -> None:
    assert visitor.server.server_address[0] == "127.0.0.1"
