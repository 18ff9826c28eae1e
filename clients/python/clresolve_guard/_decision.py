"""Parses decisions and checks, signed or unsigned.

Parsing is strict: if any member that the guard relies on is malformed, it raises `ValueError`.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

_DECISIONS = ("allow", "deny", "undecided")

# The `typ` header of a signed decision.
_TYPE = "clresolve-decision+jwt"

# Maximum difference between the clocks of signer and guard, in seconds.
_SKEW = 30

# Maximum time from `iat` to `exp`, in seconds.
_MAX_LIFETIME = 3600

# Maximum number of entries of a 402 response that the daemon reads.
_MAX_ENTRIES = 32

# The daemon's time format. Fractions of a second are dropped, so that a deadline is never too late.
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z", re.ASCII)


@dataclass(frozen=True)
class Entry:
    """The index of an entry that may be paid, and the time until which it may be paid, in seconds since 1970."""

    index: int
    until: float


@dataclass(frozen=True)
class Decision:
    """A decision of the daemon.

    `codes` are those that decide; `until` is in seconds since 1970; `document` is the whole decision.
    """

    abort: bool
    codes: list[str]
    passing: list[Entry]
    until: float | None
    document: dict[str, Any]

    def is_about(self, index: int) -> bool:
        """Whether it allows this entry and no other."""
        return [entry.index for entry in self.passing] == [index]


def read_decision(decision: Any, schema: str, name: str | None, verb: str | None) -> Decision:
    """Reads the decision of this schema, about this name and verb, from parsed JSON.

    A check has the members of a decision. A name or verb that was not asked about is not compared.
    """
    _must(isinstance(decision, dict) and decision.get("schema") == schema, "schema")
    _must(name is None or decision.get("name") == name, "question")
    _must(verb is None or decision.get("verb") == verb, "question")
    word, abort = decision.get("decision"), decision.get("abort")
    _must(word in _DECISIONS, "decision")
    # `abort` is false if and only if the decision is `allow`.
    _must(abort is (word != "allow"), "abort")
    codes, entries = decision.get("codes"), decision.get("entries")
    _must(isinstance(codes, list) and all(isinstance(code, str) for code in codes), "codes")
    _must(isinstance(entries, list), "entries")
    for entry in entries:
        _must(isinstance(entry, dict) and type(entry.get("index")) is int, "entries")
        _must(0 <= entry["index"] < _MAX_ENTRIES and isinstance(entry.get("abort"), bool), "entries")
    _must(len({entry["index"] for entry in entries}) == len(entries), "entries")
    _must("valid_until" in decision, "valid_until")
    until = _time(decision["valid_until"])
    passing = [_passing(entry, until) for entry in entries if not entry["abort"]]
    return Decision(abort, _without_warnings(codes, decision.get("reasons")), passing, until, decision)


def _without_warnings(codes: list[str], reasons: Any) -> list[str]:
    """The codes that are not warnings.

    The first always remains: if the gate denies a warning, its code is the first one.
    """
    listed = [one for one in reasons if isinstance(one, dict)] if isinstance(reasons, list) else []
    warnings = [reason.get("code") for reason in listed if reason.get("effect") == "warn"]
    return codes[:1] + [code for code in codes[1:] if code not in warnings]


def _passing(entry: dict[str, Any], shared: float | None) -> Entry:
    """An allowed entry, with its own deadline or else that of the decision."""
    until = _time(entry["valid_until"]) if "valid_until" in entry else shared
    if until is None:
        raise ValueError("valid_until")
    return Entry(entry["index"], until)


def _time(text: Any) -> float | None:
    if text is None:
        return None
    found = _TIME.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError("valid_until")
    return datetime.fromisoformat(found[1]).replace(tzinfo=timezone.utc).timestamp()


def open_jws(text: str, issuer: str, jwks: dict[str, Any], asked: str, now: int) -> Any:
    """Returns the decision from a currently valid JWS of the signer for the question with the digest `asked`."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    parts = text.split(".")
    _must(len(parts) == 3, "form")
    header = json.loads(_decoded(parts[0]))
    _must(isinstance(header, dict) and set(header) == {"alg", "kid", "typ"}, "header")
    _must(header["alg"] == "EdDSA" and header["typ"] == _TYPE, "header")
    keys = [key for key in jwks["keys"] if key.get("kty") == "OKP" and key.get("crv") == "Ed25519"]
    keys = [key for key in keys if key.get("kid") == header["kid"]]
    _must(len(keys) > 0, "key")
    key = Ed25519PublicKey.from_public_bytes(_decoded(keys[0]["x"]))
    try:
        key.verify(_decoded(parts[2]), f"{parts[0]}.{parts[1]}".encode("ascii"))
    except InvalidSignature:
        raise ValueError("signature") from None

    claims = json.loads(_decoded(parts[1]))
    _must(isinstance(claims, dict) and claims.get("iss") == issuer, "issuer")
    # Otherwise a decision about other terms would be accepted.
    _must(claims.get("request") == asked, "question")
    iat, exp = claims.get("iat"), claims.get("exp")
    _must(type(iat) is int and type(exp) is int and 0 < exp - iat <= _MAX_LIFETIME, "time")
    _must(now < exp + _SKEW and iat <= now + _SKEW, "time")
    return claims.get("decision")


def _decoded(part: str) -> bytes:
    data = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    _must(base64.urlsafe_b64encode(data).rstrip(b"=").decode() == part, "form")
    return data


def _must(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)
