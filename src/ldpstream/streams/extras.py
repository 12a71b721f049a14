"""What to install, said before an import fails."""

from __future__ import annotations

import importlib.util

from ldpstream.errors import Mistake, Problem


def need_polars(what: str) -> None:
    """Polars reads files of events; it comes with the extra `data`."""
    _need("polars", "data", what)


def need_matplotlib(what: str) -> None:
    """Matplotlib draws; it comes with the extra `figures`."""
    _need("matplotlib", "figures", what)


def _need(package: str, extra: str, what: str) -> None:
    try:
        found = importlib.util.find_spec(package)
    except ValueError:  # None stands in its place in sys.modules
        found = None
    if found is None:
        raise Mistake(Problem.EXTRA_MISSING, what=what, extra=extra)
