"""Looking into databases without touching them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def reading(path: Path) -> closing[sqlite3.Connection]:
    """A connection that changes nothing, for a while."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    return closing(sqlite3.connect(uri, uri=True, timeout=10.0))
