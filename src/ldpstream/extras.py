"""The extras of pyproject.toml: which extra installs which package, and the error without it.

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
    "httptools": "collector",
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
"""The extra that installs a package, by the name under which the package is imported.

Those of `WITH_FALLBACK` are not listed.
"""

WITH_FALLBACK = {
    "numba": "compiled code runs as Python",
    "pandas": "PySpark loads it",
    "uvloop": "uvicorn takes the event loop of asyncio",
}
"""What happens without the other packages of the extras, which nothing here has to import."""


def need(what: str, extra: str) -> None:
    """Raise `Mistake` if a package of the extra that `what` needs is not installed."""
    if not all(is_installed(package) for package, its in EXTRA_OF.items() if its == extra):
        raise Mistake(Problem.EXTRA_MISSING, what=what, extra=extra)


def extra_for(error: ModuleNotFoundError) -> str | None:
    """Return the extra that installs the module that was not found, or None if there is none.

    >>> extra_for(ModuleNotFoundError(name="paho.mqtt"))
    'mqtt'
    """
    return EXTRA_OF.get((error.name or "").partition(".")[0])


def is_installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:  # sys.modules has None in its place
        return False
