"""Why a request or a payment was not sent."""

from __future__ import annotations

import re
from typing import Any, Literal

Code = Literal[
    "denied",
    "unavailable",
    "redirected",
    "unreadable",
    "no-decision",
    "two-payments",
    "payment-denied",
    "other-protocol",
]

_MESSAGES: dict[Code, str] = {
    "denied": "clresolve denies this agent or its terms",
    "unavailable": "no usable answer from clresolve",
    "redirected": "the seller redirects to another URL",
    "unreadable": "the seller's 402 is larger than 64 KiB, takes longer than 10 s, is truncated, or cannot be decoded",
    "no-decision": "no decision allows a payment to this URL: none was made, it has expired, or it was used",
    "two-payments": "the request contains more than one payment",
    "payment-denied": "the signed payment differs from what was allowed",
    "other-protocol": "the request contains a payment of another protocol than x402",
}

# The form of the daemon's codes. Messages contain no other part of a response.
_CODE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
_MAX_CODE_LENGTH = 64


class GuardError(Exception):
    """The guard refused, and nothing was paid.

    `code` is the kind of the refusal. `codes` are the codes of the reasons that decide, without warnings; `clresolve
    explain CODE` explains them. `__cause__` is the local error that caused it, if any; no message contains its text.
    """

    def __init__(self, code: Code, codes: list[Any] | None = None, detail: str = "") -> None:
        """`detail` continues the message: the daemon's URL, and what happened."""
        self.code: Code = code
        self.codes: list[str] = [one for one in codes or [] if _is_code(one)]
        why = f" ({', '.join(self.codes)})" if self.codes else ""
        super().__init__(f"not paying: {_MESSAGES[code]}{detail}{why}")


def _is_code(one: Any) -> bool:
    return isinstance(one, str) and len(one) <= _MAX_CODE_LENGTH and _CODE.fullmatch(one) is not None
