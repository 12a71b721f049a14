"""A cache on disk for the figures of finished tasks, by the key of the task."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from ldpstream.errors import Mistake, Problem
from ldpstream.lab.tasks import Figures
from ldpstream.streams.home import home

SCHEMA = """
CREATE TABLE IF NOT EXISTS results (
    key TEXT PRIMARY KEY,   -- Task.key: parameters, stream and code
    figures TEXT NOT NULL   -- JSON
) WITHOUT ROWID
"""


class ResultCache:
    """A SQLite file that only the parent process writes to, in one transaction for each result.

    However and whenever the process ends, the file is valid and has all results that arrived.

    >>> import tempfile
    >>> with ResultCache(Path(tempfile.mkdtemp()) / "results.db") as cache:
    ...     cache.put("a", {"mre": 0.1})
    ...     cache.known(["a", "b"])
    {'a': {'mre': 0.1}}
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path = path or home() / "results.db"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path, timeout=60)
            # With a write-ahead log a crash costs the last results at most, never the file.
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = NORMAL")
            self._file.execute(SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise Mistake(Problem.CACHE_FILE, file=path, what=error) from None

    def known(self, keys: Iterable[str]) -> dict[str, Figures]:
        """Return the figures of those `keys` that are in the cache."""
        query = "SELECT figures FROM results WHERE key = ?"
        rows = ((key, self._file.execute(query, (key,)).fetchone()) for key in keys)
        return {key: json.loads(row[0]) for key, row in rows if row}

    def put(self, key: str, figures: Figures) -> None:
        with self._file:
            self._file.execute(
                "INSERT OR REPLACE INTO results VALUES (?, ?)", (key, json.dumps(figures))
            )

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> ResultCache:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
