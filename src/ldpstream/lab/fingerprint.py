"""Fingerprints of the code that figures depend on: changed code never reuses an old result.

Code that only shows, moves or stores results is left out, so that a new figure costs no run.
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

from ldpstream.lab.imported_code import imported_code

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
    "protocol/attributes.py",
    "protocol/limits.py",
    "protocol/names.py",
    "protocol/slots.py",
    "protocol/strata.py",
    "protocol/terms.py",
    "streams/stream.py",
    "streams/events.py",
    "streams/correlated.py",
    "streams/persistent.py",
    "vocabulary",
    "lab/fleet.py",
    "lab/levelled.py",
    "lab/metrics.py",
    "lab/personal.py",
    "lab/roster.py",
    "lab/selection.py",
    "lab/simulation.py",
    "lab/tasks.py",
    "lab/transcripts.py",
    "lab/central",
)


@cache
def of_package() -> str:
    """Return the hash of this package's code and of NumPy's version, which fixes its generators."""
    digest = hashlib.sha256(np.__version__.encode())
    for path in sources():
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def sources() -> Iterator[Path]:
    """Yield the files of this package that results depend on."""
    for name in COUNTS_FOR_RESULTS:
        path = PACKAGE / name
        yield from sorted(path.rglob("*.py")) if path.is_dir() else filter(Path.exists, [path])


@cache
def of_class(kind: type) -> str:
    """Return the hash of the modules of a user's class and its bases; "" for a class of ours.

    The modules that they import count as well. It is cached: a file may be edited while the class
    that was loaded from it is in use.
    """
    own = {base: _source(base) for base in kind.__mro__ if not is_ours(base)}
    imported: dict[str, str] = {}
    for base, text in own.items():
        module = sys.modules.get(base.__module__)
        imported |= imported_code(text, getattr(module, "__package__", None))
    parts = [*own.values(), *(f"{name}\n{text}" for name, text in sorted(imported.items()))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest() if own else ""


def is_ours(kind: type) -> bool:
    return kind.__module__.split(".")[0] in (__name__.split(".")[0], "abc", "builtins")


def _source(kind: type) -> str:
    """Return the source of a class's module, since it may use any of it; in a notebook, its own."""
    for thing in (sys.modules.get(kind.__module__), kind):
        try:
            if thing is not None:
                return inspect.getsource(thing)
        except (OSError, TypeError):
            continue
    return f"{kind.__qualname__} of {_this_process()}"


@cache
def _this_process() -> str:
    """Return a unique stand-in for unreadable code: no other process may reuse its results."""
    return str(uuid.uuid4())
