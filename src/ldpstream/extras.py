"""The extras of pyproject.toml: which package comes with which, and what to say without it.

The package itself needs the standard library only; a device needs no more than that.
"""

from __future__ import annotations

import importlib.util

from ldpstream.errors import Mistake, Problem

EXTRA_OF = {
    "numpy": "lab",
    "rich": "lab",
    "typer": "lab",
    "fastapi": "collector",
    "prometheus_client": "collector",
    "uvicorn": "collector",
    "distributed": "dask",
    "polars": "data",
    "matplotlib": "figures",
    "paho": "mqtt",
    "nats": "nats",
    "psycopg": "postgres",
    "pyarrow": "spark",
    "pyspark": "spark",
}
"""The extra that brings a package, by the name that it is imported under.

Packages that we do without if they are missing, such as Numba, are not here.
"""


def need(what: str, extra: str) -> None:
    """Refuse to begin something whose extra is not installed."""
    if not all(_is_there(package) for package, its in EXTRA_OF.items() if its == extra):
        raise Mistake(Problem.EXTRA_MISSING, what=what, extra=extra)


def extra_for(error: ModuleNotFoundError) -> str | None:
    """Return the extra that brings the module that was not found, or None if none does.

    >>> extra_for(ModuleNotFoundError(name="paho.mqtt"))
    'mqtt'
    """
    return EXTRA_OF.get((error.name or "").partition(".")[0])


def _is_there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:  # None stands in its place in sys.modules
        return False
