"""Checks of the arguments of public functions, which report a mistake in one line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

from ldpstream.errors import Mistake, Problem

P = ParamSpec("P")
R = TypeVar("R")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function refuse unknown and missing arguments with a one-line error.

    >>> @checked
    ... def area(width: float, *, height: float = 1.0) -> float:
    ...     return width * height
    >>> area(2, height=3)
    6
    >>> area(2, hight=3)
    Traceback (most recent call last):
    ldpstream.errors.Mistake: area() has no argument 'hight'; did you mean 'height'? It takes: \
width, height
    >>> area()
    Traceback (most recent call last):
    ldpstream.errors.Mistake: area() needs the argument 'width'; give it: area(width=...)
    """
    parameters = inspect.signature(function).parameters
    name = function.__qualname__

    @wraps(function)
    def call(*given: P.args, **named: P.kwargs) -> R:
        for one in named:
            if one not in parameters:
                raise _unknown(name, one, [known for known in parameters if known != "cls"])
        for one in list(parameters)[len(given) :]:
            if parameters[one].default is inspect.Parameter.empty and one not in named:
                raise Mistake(Problem.ARGUMENT_MISSING, function=name, name=one)
        return function(*given, **named)

    return call


def one_of(name: str, given: str, known: Iterable[str]) -> None:
    """Refuse, in one line, a word that is none of those known.

    >>> one_of("metric", "rmse", ["mre", "mse"])
    Traceback (most recent call last):
    ldpstream.errors.Mistake: metric is 'rmse'; give one of: mre, mse
    """
    words = tuple(known)
    if given not in words:
        expected = f"one of: {', '.join(words)}"
        raise Mistake(Problem.OPTION, option=name, given=repr(given), expected=expected)


def meant(given: str, known: Iterable[str]) -> str | None:
    """Return the word that was probably meant, if a single one stands out.

    >>> meant("lfp", ["lpf", "lsp"]), meant("lpx", ["lpf", "lpu"])
    ('lpf', None)
    """
    words = tuple(known)
    swapped = [one for one in words if sorted(one) == sorted(given)]
    near = swapped or get_close_matches(given, words)
    return near[0] if len(near) == 1 else None


def _unknown(function: str, given: str, known: list[str]) -> Mistake:
    """Return the error for a name that is not known, with the nearest one that is."""
    near = get_close_matches(given, known, n=1)
    guess = f"did you mean {near[0]!r}? It takes" if near else "it takes"
    return Mistake(
        Problem.ARGUMENT_UNKNOWN, function=function, name=given, guess=guess, known=", ".join(known)
    )
