"""Which store a configuration asks for: a file, or a database.

Neither loads what the other needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ldpstream.collector.config import Config
from ldpstream.collector.credentials.secrets import Secrets, file_of, find_secret, place_of
from ldpstream.collector.report_log.contract import LogSettings
from ldpstream.collector.store.contract import Archive, Store
from ldpstream.collector.store.database import Database
from ldpstream.errors import Mistake, Problem

_EXTRAS = {
    "psycopg": ("a store on PostgreSQL", "postgres"),
    "nats": ("a report log on NATS", "nats"),
}
"""What a package that is missing is for, and the extra that brings it."""


def load_secrets(config: Config) -> Secrets:
    """Find the secrets of a collector, or generate those of a new one."""
    check_master(config)
    return Secrets.load(config.secret_files, config.folder)


def check_master(config: Config) -> None:
    """Refuse a store that is there without its master secret."""
    if config.database is None and is_begun(config) and find_master(config) is None:
        file = file_of("master", config.folder)
        raise Mistake(Problem.MASTER_MISSING, where=config.store, file=file)


def find_master(config: Config) -> bytes | None:
    """Return the master secret of a collector; None if it has none yet."""
    return find_secret("master", config.secret_files, config.folder)


def master_beside(store: str) -> bytes | None:
    """Return the master secret from the environment, or from the folder of a store that is a file.

    That is all there is to go by where no configuration is given. Return None if it is in neither.
    """
    return find_secret("master", {}, Path() if "://" in store else Path(store).parent)


def token_places(config: Config) -> dict[str, str]:
    """Return where the tokens of a collector are: in which file, or variable of the environment."""
    return {
        name: place_of(name, config.secret_files, config.folder) for name in ("admin", "enrolment")
    }


def place_of_store(config: Config) -> str:
    """Return what the configuration calls `store`, for `open_archive`."""
    return str(config.store) if config.database is None else config.database.url


def is_begun(config: Config) -> bool:
    """Return whether there is a store already, or only a place for one."""
    if config.database is not None:
        with needing_extras():
            from ldpstream.collector.store.postgres.archive import is_begun as has_tables
        return has_tables(config.database)
    from ldpstream.collector.store.sqlite import integrity

    return integrity.is_begun(integrity.find_main_file(config.store))


def check_log(settings: LogSettings) -> None:
    """Refuse a report log that does not answer, or keeps nothing."""
    with needing_extras():
        from ldpstream.collector.report_log.jetstream import JetStreamLog
    JetStreamLog(settings).close()


def open_store(config: Config, secrets: Secrets) -> Store:
    """The store of a collector, for this process.

    A collector that was stopped while it rotated its master secret may have to use the new one.
    """
    new = secrets.source.new
    try:
        try:
            return _open_store(config, secrets.master)
        except Mistake as mistake:
            if mistake.problem is not Problem.MASTER_DIFFERS or new is None:
                raise
        return _open_store(config, new)
    except Mistake as mistake:
        if _is_untouched(config, mistake.problem):
            secrets.forget_drawn()
        raise


def _is_untouched(config: Config, refusal: Problem) -> bool:
    """Return whether a refused store holds nothing that was made with this secret."""
    if config.database is not None:
        return refusal in (Problem.MASTER_DIFFERS, Problem.DATABASE, Problem.EXTRA_MISSING)
    from ldpstream.collector.store.sqlite import integrity

    return not integrity.is_begun(config.store)


def _open_store(config: Config, master: bytes) -> Store:
    if config.database is None:
        from ldpstream.collector.store.sqlite.store import SqliteStore

        return SqliteStore(config.store, master)
    with needing_extras():
        from ldpstream.collector.store.postgres.store import PostgresStore

        if config.ingest is not None:
            from ldpstream.collector.report_log.store import LoggedStore

            return LoggedStore(config.database, master, config.ingest, config.lease_ms)
    return PostgresStore(config.database, master, config.lease_ms)


def open_place(store: str, master: bytes) -> Store:
    """The store of a collector that does not run, where no configuration is given."""
    if "://" not in store:
        from ldpstream.collector.store.sqlite.store import SqliteStore

        return SqliteStore(Path(store), master)
    with needing_extras():
        from ldpstream.collector.store.postgres.store import PostgresStore
    return PostgresStore(Database(store), master)


@contextmanager
def open_archive(store: str) -> Iterator[Archive]:
    """Open what a configuration calls `store`, for reading only."""
    if "://" not in store:
        from ldpstream.collector.store.sqlite import reading

        with reading.open_archive(Path(store)) as file:
            yield file
        return
    database = Database(store)
    with needing_extras():
        from ldpstream.collector.store.postgres import archive
    with archive.open_archive(database) as found:
        yield found


@contextmanager
def needing_extras() -> Iterator[None]:
    """Report a package that is missing as the extra that brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        what, extra = _EXTRAS.get(error.name or "", ("", ""))
        if not extra:
            raise
        raise Mistake(Problem.EXTRA_MISSING, what=what, extra=extra) from None
