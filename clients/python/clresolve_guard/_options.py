"""Checks the options of a guard. Messages suggest the spelling that was probably meant."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

_P = ParamSpec("_P")

# The value of `agent` that means every seller, and other spellings of it.
ANY = "any"
_LIKE_ANY = (ANY, "*")


def known_names(init: Callable[_P, None]) -> Callable[_P, None]:
    """Raises `TypeError` with the nearest name if a keyword argument is unknown."""
    _, *known = inspect.signature(init).parameters

    @wraps(init)
    def checked(*args: _P.args, **options: _P.kwargs) -> None:
        for name in options:
            if name not in known:
                nearest = difflib.get_close_matches(name, known, 1)
                unknown = f"unknown argument; the arguments are {', '.join(known)}"
                raise TypeError(f"{name}: {f'did you mean {nearest[0]}?' if nearest else unknown}")
        init(*args, **options)

    return checked


def check_whom(agent: str, name: str | None, verb: str | None) -> None:
    """Checks whom the guard pays: one agent for one verb, or any seller.

    Only for any seller may the verb be left out, and a seller's name be given.
    """
    if not agent:
        raise ValueError('agent: expected an ENS name, or "any"')
    if agent != ANY:
        _check_name("agent", agent)
    if verb == "" or (verb is None and agent != ANY):
        raise ValueError("verb must not be empty")
    if name is None:
        return
    if agent != ANY:
        raise ValueError('name: expected only with agent="any"')
    _check_name("name", name)


def _check_name(argument: str, name: str) -> None:
    """Checks the parts of the normal form (ENSIP-15) that need no tables.

    These are: no ASCII capitals, no spaces, no empty labels. A name without a dot is a top-level domain, not an agent.
    """
    # The method of bytes changes only ASCII capitals.
    spelt = "".join(name.split()).encode().lower().decode()
    labels = [label for label in spelt.split(".") if label]
    if not labels:
        raise ValueError(f"{argument} must not be empty")
    if argument == "agent" and ".".join(labels) in _LIKE_ANY:
        raise ValueError('agent: did you mean "any"?')
    meant = ".".join(labels if len(labels) > 1 else [*labels, "eth"])
    if name != meant:
        raise ValueError(f"{argument}: expected the full ENS name in normal form; did you mean {meant}?")
