"""Stores as `ldpstream audit store` finds them: by a configuration, or by their own place."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldpstream.errors import Mistake, Problem

if TYPE_CHECKING:
    from ldpstream.collector.store.chain import ChainCheck

Show = Callable[[str, int, int], None]
ADMIN_LOG = "(admin log)"
"""In the place of a stream's name, which no stream can have."""
ABSENT = "no: the store has no such stream"
UNCHAINED = "no: the next start of its collector chains it"


@dataclass(frozen=True)
class StoreLocation:
    """A store, its master secret if it was found, and where else that could be."""

    store: str
    master: bytes | None
    secret_file: object
    configured: tuple[str, ...] = ()
    """The streams that a configuration names."""

    @classmethod
    def of(cls, given: str) -> StoreLocation:
        """Read a path that ends in .toml as a configuration, and anything else as a store."""
        from ldpstream.collector.config import load
        from ldpstream.collector.credentials.secrets import file_of
        from ldpstream.collector.service.opening import find_master, master_beside

        if given.endswith(".toml"):
            config = load(Path(given))
            store = str(config.store) if config.database is None else config.database.url
            names = tuple(one.name for one in config.streams)
            return cls(store, find_master(config), file_of("master", config.folder), names)
        database = "://" in given
        file = "a configuration's" if database else file_of("master", Path(given).parent)
        return cls(given, master_beside(given), file)

    @property
    def _known_master(self) -> bytes:
        if self.master is None:
            from ldpstream.collector.store.database import Database

            where = Database(self.store) if "://" in self.store else self.store
            raise Mistake(Problem.MASTER_MISSING, where=where, file=self.secret_file)
        return self.master

    def check(self, show: Show) -> list[dict[str, Any]]:
        """Check the chain of every stream: a row for each."""
        from ldpstream.collector.service.opening import open_archive
        from ldpstream.collector.store.chain import EVERY, ChainCheck

        with open_archive(self.store) as archive:
            chain = archive.chain(self._known_master)
            streams = sorted(archive.terms())
            if chain is None:
                return [
                    _row(ChainCheck(stream), UNCHAINED) | {"releases": None} for stream in streams
                ]
            rows = [
                _row(archive.check_releases(chain, stream, partial(_tell, show, stream)), "yes")
                for stream in streams
            ]
            listed = archive.check_releases(chain, EVERY)
            rows += [] if listed.damage is None else [_row(listed, "yes")]
            log = replace(archive.check_log(chain), stream=ADMIN_LOG)
            rows += [_row(log, "yes")] if log.releases or log.damage else []
            absent = sorted({*self.configured} - {*streams})
            return rows + [
                _row(ChainCheck(stream), ABSENT) | {"releases": None} for stream in absent
            ]

    def accept(self, streams: list[str]) -> None:
        """Chain streams as they are; the collector of a file must not be running."""
        from ldpstream.collector.service.opening import open_place
        from ldpstream.collector.store.admin_tables import AdminLogEntry
        from ldpstream.machine_clock import SystemClock

        with closing(open_place(self.store, self._known_master)) as store:
            for stream in streams:
                if stream == ADMIN_LOG:
                    store.admin.accept_log(
                        AdminLogEntry(SystemClock().wall_ms(), "audit", "accept-log")
                    )
                else:
                    store.accept_releases(stream)


def _tell(show: Show, stream: str, number: int) -> None:
    show(stream, number, 0)


def _row(found: ChainCheck, checked: str) -> dict[str, Any]:
    return {
        "stream": found.stream,
        "releases": found.releases,
        "from": found.first_t,
        "to": found.last_t,
        "pruned": found.pruned_t,
        "summaries": found.summaries,
        "checked": checked,
        "damage": None if found.damage is None else str(found.damage),
    }
