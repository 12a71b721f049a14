"""Read-only access to SQLite files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def reading(path: Path) -> closing[sqlite3.Connection]:
    """Open a read-only connection; use it in a `with` block, which closes it."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    return closing(sqlite3.connect(uri, uri=True, timeout=10.0))
