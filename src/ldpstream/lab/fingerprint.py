"""Fingerprints of the code that figures depend on: a result is only as old as the code behind it.

What only shows, moves or stores results is left out, so that a new figure costs no run.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

PACKAGE = Path(__file__).parents[1]
COUNTS_FOR_RESULTS = (
    "arrays.py",
    "domain.py",
    "compiled.py",
    "privacy",
    "oracles",
    "numeric",
    "refine",
    "mechanisms",
    "streams/stream.py",
    "streams/events.py",
    "lab/metrics.py",
    "lab/roster.py",
    "lab/simulation.py",
    "lab/tasks.py",
    "lab/central",
)


@cache
def of_package() -> str:
    """Of this package's code, and of NumPy's version: its generators may change with it."""
    digest = hashlib.sha256(np.__version__.encode())
    for path in sources():
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def sources() -> Iterator[Path]:
    """The files of this package that count."""
    for name in COUNTS_FOR_RESULTS:
        path = PACKAGE / name
        yield from sorted(path.rglob("*.py")) if path.is_dir() else filter(Path.exists, [path])


@cache
def of_class(kind: type) -> str:
    """Of the modules that a user's class and its bases are written in; nothing for our own.

    Read once: the file may be edited while the class that was made of it is still at work.
    """
    texts = [_source(base) for base in kind.__mro__ if not is_ours(base)]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest() if texts else ""


def is_ours(kind: type) -> bool:
    return kind.__module__.split(".")[0] in (__name__.split(".")[0], "abc", "builtins")


def _source(kind: type) -> str:
    """The whole module, since a class may use anything in it; in a notebook, the class."""
    for thing in (sys.modules.get(kind.__module__), kind):
        try:
            if thing is not None:
                return inspect.getsource(thing)
        except (OSError, TypeError):
            continue
    return f"{kind.__qualname__} of {_this_process()}"


@cache
def _this_process() -> str:
    """Stands for code that cannot be read: no other process may take its results for its own."""
    return str(uuid.uuid4())
