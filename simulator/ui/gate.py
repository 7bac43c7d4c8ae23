"""Who may see the pages: requests of this machine's own browser, which has got the token.

The server listens on loopback only. That keeps other machines out, but not other users of this one, nor pages of the
web in the user's own browser. Against the former there is a random token, which the first address carries and then a
cookie; against the latter the cookie is ``SameSite=Strict`` and the ``Host`` must be this server's own, so that no
other name can be made to lead here (DNS rebinding).
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field

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


@dataclass(frozen=True)
class Gate:
    """Lets requests through.

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
