"""Which store a configuration asks for: a file, or a database.

Neither loads what the other needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ldpstream.collector.config import Config
from ldpstream.collector.store.contract import Archive, Store
from ldpstream.collector.store.database import Database
from ldpstream.errors import Mistake, Problem

_EXTRAS = {
    "psycopg": ("a store on PostgreSQL", "postgres"),
    "nats": ("a report log on NATS", "nats"),
}
"""What a package that is missing is for, and the extra that brings it."""


def open_store(config: Config) -> Store:
    """The store of a collector, for this process."""
    if config.database is None:
        from ldpstream.collector.store.sqlite.store import SqliteStore

        return SqliteStore(config.store)
    with _extra():
        from ldpstream.collector.store.postgres.store import PostgresStore

        if config.ingest is not None:
            from ldpstream.collector.report_log.store import LoggedStore

            return LoggedStore(config.database, config.ingest, config.lease_ms)
    return PostgresStore(config.database, config.lease_ms)


@contextmanager
def open_archive(store: str) -> Iterator[Archive]:
    """What a configuration calls `store`, for reading only."""
    if "://" not in store:
        from ldpstream.collector.store.sqlite import reading

        with reading.open_archive(Path(store)) as file:
            yield file
        return
    database = Database(store)
    with _extra():
        from ldpstream.collector.store.postgres import archive
    with archive.open_archive(database) as found:
        yield found


@contextmanager
def _extra() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        what, extra = _EXTRAS.get(error.name or "", ("", ""))
        if not extra:
            raise
        raise Mistake(Problem.EXTRA_MISSING, what=what, extra=extra) from None
