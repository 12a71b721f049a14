"""Parameters of a mechanism, as people write them: `fast(theta=5, xi=0.1)`.

A mechanism that has any declares them as a frozen dataclass of numbers, its attribute `Parameters`;
each field has a default, and its docstring says what it does.
"""

from __future__ import annotations

import re
from dataclasses import replace
from math import isfinite
from typing import Any

from ldpstream.errors import Mistake, Problem

_WRITTEN = re.compile(r"\s*([^()\s]+)\s*(?:\(([^()]*)\))?\s*")


def split_names(text: str) -> list[str]:
    """Split a list of mechanisms at the commas that are outside of parentheses.

    >>> split_names("lpa, fast(theta=5, xi=0.1)")
    ['lpa', 'fast(theta=5, xi=0.1)']
    """
    return [part.strip() for part in re.split(r",(?![^(]*\))", text)]


def split_name(text: str) -> tuple[str, str]:
    """Return the name of a mechanism, in lower case, and the text of its parameters.

    >>> split_name("FAST(theta=5)"), split_name("lpa")
    (('fast', 'theta=5'), ('lpa', ''))
    """
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise Mistake(
            Problem.OPTION,
            option="the mechanism",
            given=repr(text),
            expected="a name, or one with parameters: fast(theta=5, xi=0.1)",
        )
    return found.group(1).lower(), found.group(2) or ""


def read_parameters(name: str, text: str, defaults: Any) -> Any:
    """Return a mechanism's parameters; `defaults` is None if it has none."""
    known = {} if defaults is None else vars(defaults)
    given: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key not in known or key in given:
            raise _refused(name, part, "one of: " + (", ".join(known) or "none, it has none"))
        given[key] = _number(name, part, value, type(known[key]))
    return replace(defaults, **given) if given else defaults


def _number(name: str, part: str, value: str, kind: type) -> Any:
    try:
        number = kind(value)
    except ValueError:
        number = float("nan")
    if not isfinite(number) or number < 0:
        expected = "a whole number" if kind is int else "a number"
        raise _refused(name, part, f"{expected}, not negative")
    return number


def _refused(name: str, given: str, expected: str) -> Mistake:
    return Mistake(
        Problem.OPTION, option=f"a parameter of {name}", given=repr(given), expected=expected
    )
