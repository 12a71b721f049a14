"""Helpers that commands share: how Ctrl-C stops them, how reports name them, checks of options."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ldpstream.errors import Mistake, Problem

if TYPE_CHECKING:
    from ldpstream.lab.cache import ResultCache

PICTURES = (".png", ".svg", ".pdf")
STOPPED = 130
"""Exit status after Ctrl-C."""


@contextmanager
def resumable() -> Iterator[None]:
    """On Ctrl-C, say how to resume: results are cached, files are written whole or not at all."""
    try:
        yield
    except KeyboardInterrupt:
        print("ldpstream: stopped; run the same command again to resume", file=sys.stderr)
        raise typer.Exit(STOPPED) from None


@contextmanager
def result_cache(*, unused: bool) -> Iterator[ResultCache | None]:
    """Open the cache of results; `unused`, for `--no-cache`, gives none."""
    from ldpstream.lab.cache import ResultCache

    if unused:
        yield None
        return
    with ResultCache() as cache:
        yield cache


def command_line(context: typer.Context) -> str:
    """Return the command as it was given, for the report that it writes."""
    words = ["ldpstream", context.info_name or ""]
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        given = context.params[name]
        option = max(parameter.opts, key=len)
        for one in given if isinstance(given, list | tuple) else [given]:
            is_argument = not option.startswith("-")
            words += [str(one)] if is_argument else [option] if one is True else [option, str(one)]
    return shlex.join(words)


def check_folder(option: str, path: Path) -> None:
    """Refuse a path that cannot be a folder for results, before there are any results."""
    if path.exists() and not path.is_dir():
        raise Mistake(Problem.OPTION, option=option, given=path, expected="a folder, new or not")


def check_positive(option: str, given: float) -> None:
    if not given > 0:  # refuses NaN, too
        raise Mistake(Problem.OPTION, option=option, given=given, expected="more than 0")


def refuse_beside(option: str, others: Mapping[str, bool]) -> None:
    """Refuse the other options if any are given: they have no meaning beside this one."""
    for other in (name for name, is_given in others.items() if is_given):
        raise Mistake(
            Problem.OPTION,
            option=f"{other} with {option}",
            given="given",
            expected=f"it without {option}",
        )


def mechanisms_named(text: str) -> tuple[str, ...]:
    """Return the mechanisms of a list with commas, each once; or every mechanism, for "all"."""
    from ldpstream.mechanisms.parameters import split_names
    from ldpstream.mechanisms.registry import names

    if text == "all":
        return names()
    return tuple(dict.fromkeys(name.lower() for name in split_names(text)))


def check_picture(option: str, path: Path) -> None:
    """Refuse a file name that no picture can be written to, before there is any picture."""
    if path.suffix.lower() not in PICTURES or path.is_dir():
        expected = f"a file that ends in {', '.join(PICTURES)}"
        raise Mistake(Problem.OPTION, option=option, given=path, expected=expected)


def whole_numbers(option: str, text: str) -> list[int]:
    """Parse whole numbers that are separated by commas.

    >>> whole_numbers("--windows", "10,20")
    [10, 20]
    """
    return [int(number) for number in numbers(option, text, whole=True)]


def numbers(option: str, text: str, *, whole: bool = False) -> list[float]:
    try:
        found = [int(part) if whole else float(part) for part in text.split(",")]
    except ValueError:
        kind = "whole numbers" if whole else "numbers"
        raise Mistake(
            Problem.OPTION, option=option, given=repr(text), expected=f"{kind} with commas"
        ) from None
    return list(dict.fromkeys(found))
