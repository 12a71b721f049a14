"""Stores as `ldpstream audit store` finds them: by a configuration, or by their own place."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldpstream.errors import Mistake, Problem

if TYPE_CHECKING:
    from ldpstream.collector.store.chain import Checked

Show = Callable[[str, int, int], None]
UNCHAINED = "no: the next start of its collector chains it"


@dataclass(frozen=True)
class Place:
    """A store, and its master secret."""

    store: str
    master: bytes

    @classmethod
    def of(cls, given: str) -> Place:
        """Take a configuration by the end of its name, and anything else for a store."""
        from ldpstream.collector.config import load
        from ldpstream.collector.credentials.secrets import file_of
        from ldpstream.collector.service.opening import find_master, master_beside

        if given.endswith(".toml"):
            config = load(Path(given))
            master, folder = find_master(config), config.folder
            store = str(config.store) if config.database is None else config.database.url
        else:
            store, master, folder = given, master_beside(given), Path(given).parent
        if master is None:
            file = "master_file" if "://" in store else file_of("master", folder)
            raise Mistake(Problem.MASTER_MISSING, where=given, file=file)
        return cls(store, master)

    def check(self, show: Show) -> list[dict[str, Any]]:
        """Check the chain of every stream: a row for each."""
        from ldpstream.collector.service.opening import open_archive
        from ldpstream.collector.store.chain import Checked

        with open_archive(self.store) as archive:
            chain = archive.chain(self.master)
            streams = sorted(archive.terms())
            if chain is None:
                return [_row(Checked(stream), UNCHAINED) for stream in streams]
            return [
                _row(archive.check_releases(chain, stream, partial(_tell, show, stream)), "yes")
                for stream in streams
            ]

    def accept(self, streams: list[str]) -> None:
        """Chain streams as they are; a collector on a file must not run meanwhile."""
        from ldpstream.collector.service.opening import open_place

        with closing(open_place(self.store, self.master)) as store:
            for stream in streams:
                store.accept_releases(stream)


def _tell(show: Show, stream: str, number: int) -> None:
    show(stream, number, 0)


def _row(found: Checked, checked: str) -> dict[str, Any]:
    return {
        "stream": found.stream,
        "releases": found.releases,
        "from": found.first_t,
        "to": found.last_t,
        "checked": checked,
        "damage": None if found.damage is None else str(found.damage),
    }
