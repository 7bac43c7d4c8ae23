"""The server: one thread for each request, GET and HEAD alone, on loopback."""

from __future__ import annotations

import hmac
import secrets
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from coband.simulator.analysis.report.embedding import static
from coband.simulator.scenario_errors import RequestError, ScenarioError
from coband.simulator.ui.catalogue import Catalogue
from coband.simulator.ui.pages import PACKAGE, PageError, Pages, Query

LOOPBACK = "127.0.0.1"
TOKEN = "token"

PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts"
)
"""A report has its style and its script inside; in its sandbox it can reach neither cookies nor other pages."""

HEADERS = {
    "Cache-Control": "no-store",
    "Connection": "close",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""What every answer says."""

HTML = "text/html; charset=utf-8"
STATIC = {"ui.css": "text/css", "ui.js": "text/javascript", "icon.svg": "image/svg+xml"}
METHODS = ("GET", "HEAD")
MOST_FIELDS = 2000
"""Fields of a query; a form with all runs of a page chosen has fewer."""
IDLE_SECONDS = 30.0
"""A connection on which nothing is asked for so long is closed."""


@dataclass(frozen=True)
class Gate:
    """Who may see the pages: requests of this machine's own browser, which has got the token.

    The server listens on loopback only. That keeps other machines out, but not other users of this one, nor pages of
    the web in the user's own browser. Against the former there is a random token, which the first address carries and
    then a cookie; against the latter the cookie is ``SameSite=Strict`` and the ``Host`` must be this server's own, so
    that no other name can be made to lead here (DNS rebinding).

    Attributes:
        port: where the server listens.
        token: a random text; whoever knows it may see everything.
    """

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/?{TOKEN}={self.token}"

    @property
    def cookie_name(self) -> str:
        """Cookies do not know ports, so that the name has it."""
        return f"coband_{self.port}"

    @property
    def cookie(self) -> str:
        """The header that sets the cookie."""
        return f"{self.cookie_name}={self.token}; Path=/; HttpOnly; SameSite=Strict"

    def is_own_host(self, hosts: list[str]) -> bool:
        """Whether a request's ``Host`` headers are one, which names this server."""
        return len(hosts) == 1 and hosts[0].strip().lower() in (f"{LOOPBACK}:{self.port}", f"localhost:{self.port}")

    def is_token(self, text: str) -> bool:
        """Whether it is the token; takes equally long for all texts of its length."""
        return hmac.compare_digest(text.encode("utf-8", "surrogateescape"), self.token.encode())

    def has_cookie(self, headers: list[str]) -> bool:
        """Whether a request's ``Cookie`` headers have the token."""
        pairs = (pair.partition("=") for text in headers for pair in text.split(";"))
        return any(name.strip() == self.cookie_name and self.is_token(value.strip()) for name, _, value in pairs)


@dataclass(frozen=True)
class Answer:
    """What is sent back."""

    text: str
    status: int = HTTPStatus.OK
    kind: str = HTML
    policy: str = PAGE_POLICY
    cookie: str = ""


class RunServer(ThreadingHTTPServer):
    """Serves the pages about all runs below a directory.

    Args:
        port: where to listen; 0 for any free port.
    """

    def __init__(self, root: Path, port: int = 0) -> None:
        super().__init__((LOOPBACK, port), Handler)
        self.gate = Gate(self.server_address[1])
        pages = self.pages = Pages(Catalogue(root))
        self.routes: Mapping[str, tuple[Callable[[Query], str], str]] = {
            "/": (pages.runs, PAGE_POLICY),
            "/run": (pages.run, PAGE_POLICY),
            "/compare": (pages.compare, PAGE_POLICY),
            "/scenario": (pages.scenario, PAGE_POLICY),
            "/diff": (pages.difference, PAGE_POLICY),
            "/report": (pages.report, REPORT_POLICY),
        }

    def warm_up(self) -> None:
        """Read all runs meanwhile, so that the first page is as quick as the others."""
        Thread(target=self.pages.runs, args=({},), daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is nobody's fault; anything else is shown."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def answer(self, path: str, query: Query) -> Answer:
        """The answer to somebody who may see everything."""
        folder, _, name = path.removeprefix("/").partition("/")
        if folder == "static" and name in STATIC:
            return Answer(static(PACKAGE, name), kind=f"{STATIC[name]}; charset=utf-8")
        if path not in self.routes:
            return self._message("There is no such page", "Go back to the list.", HTTPStatus.NOT_FOUND)
        make, policy = self.routes[path]
        try:
            return Answer(make(query), policy=policy)
        except (RequestError, ScenarioError, OSError) as error:
            status = error.status if isinstance(error, PageError) else HTTPStatus.UNPROCESSABLE_ENTITY
            return self._message("This cannot be shown", str(error), status)
        except Exception:
            traceback.print_exc()
            text = "This is a defect of coband; the terminal where it runs shows more. Other pages work."
            return self._message("Something went wrong", text, HTTPStatus.INTERNAL_SERVER_ERROR)

    def _message(self, title: str, text: str, status: int) -> Answer:
        return Answer(self.pages.message(title, text), status)


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: RunServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "coband", ""
    timeout = IDLE_SECONDS

    def do_GET(self) -> None:
        self._send(self._answer())

    do_HEAD = do_GET  # noqa: N815

    def __getattr__(self, name: str) -> Any:
        """Every other method is refused."""
        if name.startswith("do_"):
            return self._refuse_method
        raise AttributeError(name)

    def _refuse_method(self) -> None:
        self._send(_refusal(HTTPStatus.METHOD_NOT_ALLOWED, "This server only shows; it changes nothing."))

    def _answer(self) -> Answer:
        gate = self.server.gate
        if not gate.is_own_host(self.headers.get_all("Host", [])):
            return _refusal(HTTPStatus.FORBIDDEN, f"This server is {LOOPBACK}:{gate.port} and has no other name.")
        try:
            address = urlsplit(self.path)
            query = parse_qs(address.query, errors="replace", max_num_fields=MOST_FIELDS)
        except ValueError:
            return _refusal(HTTPStatus.BAD_REQUEST, "This address cannot be read.")
        if TOKEN in query and gate.is_token(query[TOKEN][0]):
            return Answer(self.server.pages.entered(), cookie=gate.cookie)
        if not gate.has_cookie(self.headers.get_all("Cookie", [])):
            return _refusal(HTTPStatus.FORBIDDEN, "Open the address that `coband ui` has printed, with its token.")
        return self.server.answer(address.path, query)

    def _send(self, answer: Answer) -> None:
        content = answer.text.encode("utf-8", "backslashreplace")
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", answer.policy)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if answer.cookie:
            self.send_header("Set-Cookie", answer.cookie)
        if answer.status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", ", ".join(METHODS))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: addresses may have the token."""


def _refusal(status: HTTPStatus, text: str) -> Answer:
    return Answer(f"{text}\n", status, "text/plain; charset=utf-8")
