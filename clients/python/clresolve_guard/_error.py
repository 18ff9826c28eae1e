"""Why a request, or a payment, did not leave."""

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
    "denied": "clresolve denies it",
    "unavailable": "clresolve gave no answer that can be relied on",
    "redirected": "another URL answers, or the seller sends us to one",
    "unreadable": "the seller's 402 is longer than 64 KiB or 10 s, breaks off, or cannot be decoded",
    "no-decision": "a payment without a decision for this URL: none was made, it is over, or it was used",
    "two-payments": "more than one payment in one request",
    "payment-denied": "what is signed is not what was allowed",
    "other-protocol": "a payment by another protocol than x402",
}

# A code as the daemon writes it. Nothing else of an answer is put into a message.
_CODE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
_MAX_CODE_LENGTH = 64


class GuardError(Exception):
    """The guard refused: nothing was paid.

    `code` says what it was, `codes` are the daemon's reasons (`clresolve explain CODE`). `__cause__` is the local error
    behind `unreadable`; its text is in no message.
    """

    def __init__(self, code: Code, codes: list[Any] | None = None) -> None:
        self.code: Code = code
        self.codes: list[str] = [one for one in codes or [] if _is_code(one)]
        why = f" ({', '.join(self.codes)})" if self.codes else ""
        super().__init__(f"do not pay: {_MESSAGES[code]}{why}")


def _is_code(one: Any) -> bool:
    return isinstance(one, str) and len(one) <= _MAX_CODE_LENGTH and _CODE.fullmatch(one) is not None
