"""Builds requests to the clresolve daemon and parses its responses.

The transport sends these requests, blocking or not, over connections of its own. It ignores proxies from the
environment and follows no redirects. Unless a response is complete and valid, the guard refuses.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import ssl
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from ._decision import Decision, open_jws, read_decision
from ._error import GuardError

# The gate's code when a resolution exceeds the gate's deadline. The resolution continues, and a retry may succeed.
_TOO_SLOW = "deadline-passed"


@dataclass(frozen=True)
class Signer:
    """The signer of decisions.

    `issuer` is `sign.issuer` of the daemon's configuration. `jwks` contains the trusted keys, in the form of the
    daemon's `/.well-known/jwks.json`. Get them over a channel that you trust.
    """

    issuer: str
    jwks: dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """A response of the daemon."""

    status: int
    headers: httpx.Headers
    content: bytes


class Daemon:
    """Builds requests and parses responses."""

    def __init__(
        self, daemon: str, agent: str, verb: str, limits: dict[str, Any] | None, ca: str | None, signer: Signer | None
    ) -> None:
        if not agent or not verb:
            raise ValueError("agent and verb must not be empty")
        self.socket = daemon.removeprefix("unix:") if daemon.startswith("unix:/") else None
        self.ca = ca
        self._base = "http://localhost" if self.socket else _base(httpx.URL(daemon), signer is not None)
        self._gate = f"/v1/gate/{quote(agent, safe='')}/{quote(verb, safe='')}"
        self._question: dict[str, Any] = {"name": agent, "verb": verb}
        if limits is not None:
            self._question["limits"] = limits
        self._signer = signer

    def tls(self) -> ssl.SSLContext | bool:
        """How the daemon's certificate is verified. `False` without https."""
        if not self._base.startswith("https:"):
            return False
        context = httpx.create_ssl_context(trust_env=False)
        if self.ca is not None:
            context.load_verify_locations(cadata=self.ca)
        return context

    def gate(self) -> httpx.Request:
        """Asks whether the agent may be called."""
        return httpx.Request("GET", self._base + self._gate)

    def is_open(self, answer: Answer) -> bool:
        """Whether the gate allows the call. `False` means: retry."""
        if answer.status == 200:
            return True
        if answer.status != 403:
            raise GuardError("unavailable")
        code = answer.headers.get("clresolve-code")
        if code != _TOO_SLOW:
            raise GuardError("denied", [code])
        return False

    def decide(self, reply: dict[str, Any]) -> httpx.Request:
        """Asks which entries of a 402 response may be paid."""
        return self._post("/v1/decisions", {"response": reply})

    def signed(self, reply: dict[str, Any], header: str, entry: int) -> httpx.Request:
        """Asks whether a signed payment is what was allowed for this entry."""
        return self._post("/v1/decisions/signed", {"response": reply, "selected": entry, "header": header})

    def decision(self, question: httpx.Request, answer: Answer) -> Decision:
        """The decision in a response. Whatever it allows has not expired."""
        if answer.status != 200:
            raise GuardError("unavailable")
        try:
            opened = self._opened(answer.content.decode(), question.content)
            decision = read_decision(opened, self._question["name"], self._question["verb"])
        except (ValueError, RecursionError):
            raise GuardError("unavailable") from None
        ends = [entry.until for entry in decision.passing]
        if not decision.abort:
            ends.append(decision.until or 0)
        if any(until <= time.time() for until in ends):
            raise GuardError("unavailable")
        return decision

    def _opened(self, text: str, asked: bytes) -> Any:
        if self._signer is None:
            return json.loads(text)
        digest = f"sha256:{hashlib.sha256(asked).hexdigest()}"
        return open_jws(text, self._signer.issuer, self._signer.jwks, digest, int(time.time()))

    def _post(self, path: str, question: dict[str, Any]) -> httpx.Request:
        accept = "application/jose" if self._signer else "application/json"
        return httpx.Request("POST", self._base + path, json={**self._question, **question}, headers={"accept": accept})


def _base(url: httpx.URL, is_signed: bool) -> str:
    """The base URL. A remote daemon needs https or signed decisions, because the network can alter other responses."""
    if url.userinfo or url.query or url.fragment or not url.host:
        raise ValueError("daemon: the URL may have only an origin and a path")
    if url.scheme not in ("http", "https"):
        raise ValueError("daemon: not an http, https or unix URL")
    if url.scheme == "http" and not is_signed and not _is_loopback(url.host):
        raise ValueError("daemon: not on this machine, so use https, or pass the signer of its decisions")
    return str(url).rstrip("/")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address == ipaddress.IPv6Address("::1") or (address.version == 4 and address.is_loopback)
