"""Payment challenges and credentials of protocols other than x402.

A seller can demand payment by x402 and by another protocol in one response. The daemon judges only the x402 terms, so
the client must never see the other demand.
"""

from __future__ import annotations

import re

import httpx

# What an authentication scheme that demands a payment contains: clients take `Payments` or `L402x` for one, too.
_SCHEME = "(?:payment|l402|lsat)"

# The parameter by which clients of Lightning find an invoice, whatever the scheme, and even inside a quoted string. Some
# drop the names of schemes from it first (`invL402oice`).
_INVOICE = "(?:invoice|macaroon|(?:l402|lsat)[a-z]{0,10})[^!-~]*="

# The headers in which clients find terms, some of them whatever the status.
_TERMS_HEADERS = ("payment-required", "x-payment-required")

# The headers that carry challenges.
_CHALLENGE_HEADERS = (b"www-authenticate", b"proxy-authenticate")

# The headers in which published clients send credentials.
_CREDENTIAL_HEADERS = ("authorization", "proxy-authorization", "payment-authorization")

# The member of an MCP message in which published clients send credentials.
_CREDENTIAL_MEMBER = re.compile(rb'org\.paymentauth/credential"\s*:')

# An escape in JSON. The code of an ASCII character, or the escaped character, is captured.
_ESCAPE = re.compile(rb"\\(?:u00([0-9a-fA-F]{2})|(.))", re.DOTALL)

# Maximum length of a challenge header that is parsed, in bytes. A longer one is removed if it mentions a payment.
_MAX_CHALLENGES_BYTES = 16 * 1024

# The grammar of RFC 9110, sections 11.2 and 11.3.
_TCHAR = r"!#$%&'*+\-.^_`|~0-9A-Za-z"
_TOKEN = f"[{_TCHAR}]+"
_QUOTED = r'"(?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[^\x00-\x08\x0a-\x1f\x7f])*"'
_PARAM = rf"{_TOKEN}[ \t]*=[ \t]*(?:{_TOKEN}|{_QUOTED})"
_TOKEN68 = r"[0-9A-Za-z\-._~+/]+=*"

# One element of the list: the start of a challenge (its scheme is captured), or another parameter of that challenge.
_ELEMENT = re.compile(rf"[ \t,]*(({_TOKEN})(?: +(?:{_PARAM}|{_TOKEN68}))?|{_PARAM})[ \t]*(?:,|\Z)")
_SEPARATORS = re.compile(r"[ \t,]*\Z")

_MENTION = re.compile(f"{_SCHEME}|{_INVOICE}", re.IGNORECASE)

# A challenge that demands a payment.
_PAYMENT = re.compile(rf"\A[{_TCHAR}]*{_SCHEME}|{_INVOICE}", re.IGNORECASE)

# Text that a client may mistake for a challenge if it searches for one, even inside a quoted string.
_LOOKALIKE = re.compile(rf"{_SCHEME}(?:(?!{_SCHEME})[{_TCHAR}])*[^!-~]+(?:[!#-+\--<>-~]+[^!-~]*)?=", re.IGNORECASE)

# A credential in a credential header, and one of MPP (JSON in base64) in any other: a challenge can name the header.
_CREDENTIAL = re.compile(rf"(?:\A|,)[^!-~]*{_SCHEME}(?:[^{_TCHAR}]|\Z)", re.IGNORECASE)
_CREDENTIAL_ELSEWHERE = re.compile(rf"(?:\A|,)[^!-~]*payment[^!-~]+e[wy][!-~]{{30}}", re.IGNORECASE)


def carries_credentials(headers: httpx.Headers) -> bool:
    """Whether a request carries a credential of another payment protocol."""
    return any(is_credential(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers.raw)


def is_credential(name: str, value: str) -> bool:
    """Whether a header contains such a credential."""
    form = _CREDENTIAL if name.lower() in _CREDENTIAL_HEADERS else _CREDENTIAL_ELSEWHERE
    return form.search(value) is not None


def body_carries_credential(request: httpx.Request) -> bool:
    """Whether the body of a request carries such a credential. Streamed bodies are not read in advance."""
    try:
        return _CREDENTIAL_MEMBER.search(_ESCAPE.sub(_unescaped, request.content)) is not None
    except httpx.RequestNotRead:
        return False


def _unescaped(escape: re.Match[bytes]) -> bytes:
    return escape[2] if escape[1] is None else bytes.fromhex(escape[1].decode())


def without_challenges(headers: httpx.Headers) -> httpx.Headers:
    """The headers of a response without the payment challenges of other protocols."""
    kept = []
    for name, value in headers.raw:
        if name.lower() in _CHALLENGE_HEADERS:
            text = without_payments(value.decode("latin-1"))
            if not text:
                continue
            value = text.encode("latin-1")
        kept.append((name, value))
    return httpx.Headers(kept)


def clean(response: httpx.Response) -> None:
    """Removes the payment challenges of other protocols, and terms from any response that is not a 402."""
    response.headers = without_challenges(response.headers)
    if response.status_code != 402:
        for name in _TERMS_HEADERS:
            response.headers.pop(name, None)


def without_payments(value: str) -> str:
    """A header value without its payment challenges.

    An ambiguous value that mentions a payment is removed entirely (the result is empty). A value without a
    payment challenge is returned unchanged.
    """
    if _MENTION.search(value) is None:
        return value
    challenges = _parsed(value) if len(value) <= _MAX_CHALLENGES_BYTES else None
    if challenges is None:
        return ""
    others = [value[start:end] for start, end in challenges if _PAYMENT.search(value[start:end]) is None]
    kept = value if len(others) == len(challenges) else ", ".join(others)
    return "" if _LOOKALIKE.search(kept) else kept


def _parsed(value: str) -> list[tuple[int, int]] | None:
    """Start and end of each challenge of a value, or `None` if the value does not follow the grammar."""
    challenges: list[tuple[int, int]] = []
    at = 0
    while not _SEPARATORS.match(value, at):
        element = _ELEMENT.match(value, at)
        if element is None:
            return None
        at = element.end()
        if element[2]:
            challenges.append(element.span(1))
        elif challenges:
            challenges[-1] = (challenges[-1][0], element.end(1))
        else:
            return None
    return challenges
