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
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from ._decision import Decision, open_jws, read_decision
from ._error import GuardError
from ._options import ANY, check_whom

# The codes that a retry may clear: the resolution exceeds the gate's deadline but continues, or the newest block has
# not confirmed the verdict yet.
_TRANSIENT = frozenset(("deadline-passed", "unconfirmed"))

# What happened, by the class of an error or of one of its causes.
_FAILURES = (
    ((TimeoutError, httpx.TimeoutException), "timeout"),
    (ConnectionRefusedError, "connection refused; is `clresolve serve` running?"),
    (FileNotFoundError, "no such socket; is `clresolve serve` running?"),
    (PermissionError, "permission denied"),
)


@dataclass(frozen=True)
class _Api:
    """The paths of the guard's questions, and the schema of the answers."""

    terms: str
    signed: str
    schema: str


# About one agent, and about any seller.
_DECISIONS = _Api("/v1/decisions", "/v1/decisions/signed", "clresolve.decision/1")
_CHECKS = _Api("/v1/checks", "/v1/checks", "clresolve.check/1")

_NOT_A_URL = "daemon: expected a URL such as http://127.0.0.1:8402"


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
        self,
        daemon: str,
        agent: str,
        name: str | None,
        verb: str | None,
        limits: dict[str, Any] | None,
        ca: str | None,
        signer: Signer | None,
    ) -> None:
        check_whom(agent, name, verb)
        # The gate knows agents alone.
        self.has_gate = agent != ANY
        if signer is not None and not self.has_gate:
            raise ValueError('signer: the daemon signs no answer for agent="any"')
        self.socket = daemon.removeprefix("unix:") if daemon.startswith("unix:/") else None
        self.ca = ca
        self._base = "http://localhost" if self.socket else _base(daemon, signer is not None)
        self._url = daemon if self.socket else self._base
        self._gate = f"/v1/gate/{quote(agent, safe='')}/{quote(verb or '', safe='')}"
        self._api = _DECISIONS if self.has_gate else _CHECKS
        question = {"name": agent if self.has_gate else name, "verb": verb, "limits": limits}
        self._question: dict[str, Any] = {member: value for member, value in question.items() if value is not None}
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
            raise self.failure(f"status {answer.status}")
        code = answer.headers.get("clresolve-code")
        if code not in _TRANSIENT:
            raise GuardError("denied", [code])
        return False

    def decide(self, reply: dict[str, Any]) -> httpx.Request:
        """Asks which entries of a 402 response may be paid."""
        return self._post(self._api.terms, {"response": reply})

    def signed(self, reply: dict[str, Any], header: str, entry: int) -> httpx.Request:
        """Asks whether a signed payment is what was allowed for this entry."""
        return self._post(self._api.signed, {"response": reply, "selected": entry, "header": header})

    def decision(self, question: httpx.Request, answer: Answer) -> Decision | None:
        """The decision in a response. Whatever it allows has not expired. `None` means: retry."""
        if answer.status != 200:
            raise self.failure(f"status {answer.status}")
        try:
            opened = self._opened(answer.content.decode(), question.content)
            name, verb = self._question.get("name"), self._question.get("verb")
            decision = read_decision(opened, self._api.schema, name, verb)
        except (ValueError, RecursionError) as error:
            raise self.failure("invalid answer") from error
        if not decision.passing and not _TRANSIENT.isdisjoint(decision.codes):
            return None
        ends = [entry.until for entry in decision.passing]
        if not decision.abort:
            ends.append(decision.until or 0)
        if any(until <= time.time() for until in ends):
            raise self.failure("expired decision; check this machine's clock")
        return decision

    def connection_failure(self, error: Exception) -> GuardError:
        """The refusal after an error of the network or of time."""
        causes = list(_with_causes(error))
        found = (what for kind, what in _FAILURES if any(isinstance(cause, kind) for cause in causes))
        return self.failure(next(found, "connection failed"))

    def failure(self, what: str) -> GuardError:
        """The refusal without a usable answer. `what` happened, in fixed words: its cause may quote the answer."""
        return GuardError("unavailable", detail=f" at {self._url}: {what}")

    def _opened(self, text: str, asked: bytes) -> Any:
        if self._signer is None:
            return json.loads(text)
        digest = f"sha256:{hashlib.sha256(asked).hexdigest()}"
        return open_jws(text, self._signer.issuer, self._signer.jwks, digest, int(time.time()))

    def _post(self, path: str, question: dict[str, Any]) -> httpx.Request:
        accept = "application/jose" if self._signer else "application/json"
        return httpx.Request("POST", self._base + path, json={**self._question, **question}, headers={"accept": accept})


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and its causes. Of a group (one error per address), the first counts."""
    while error is not None:
        yield error
        # httpcore raises its errors `from None`, but with the cause as their argument.
        inner = [*getattr(error, "exceptions", ()), *error.args]
        error = error.__cause__ or next((one for one in inner if isinstance(one, BaseException)), None)


def _base(daemon: str, is_signed: bool) -> str:
    """The base URL. A remote daemon needs https or signed decisions, because the network can alter other responses."""
    try:
        url = httpx.URL(daemon)
    except httpx.InvalidURL as error:
        raise ValueError(_NOT_A_URL) from error
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError(_NOT_A_URL)
    if url.userinfo or url.query or url.fragment:
        raise ValueError("daemon: the URL may have only an origin and a path")
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
