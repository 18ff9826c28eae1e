"""Checks the options of a guard. Messages suggest the spelling that was probably meant."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

_P = ParamSpec("_P")


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


def check_agent(agent: str) -> None:
    """Checks the parts of the normal form (ENSIP-15) that need no tables.

    These are: no ASCII capitals, no spaces, no empty labels. A name without a dot is a top-level domain, not an agent.
    """
    # The method of bytes changes only ASCII capitals.
    spelt = "".join(agent.split()).encode().lower().decode()
    labels = [label for label in spelt.split(".") if label]
    meant = ".".join(labels if len(labels) > 1 else [*labels, "eth"])
    if agent != meant:
        raise ValueError(f"agent: expected the full ENS name in normal form; did you mean {meant}?")
