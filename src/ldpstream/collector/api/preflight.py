"""A dry run of `serve`: what it would refuse, without starting or changing anything.

A collector that already runs with the file is no obstacle: its port and store may be in use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from secrets import token_bytes

from ldpstream.collector.api.server import listen
from ldpstream.collector.config import Config
from ldpstream.collector.credentials.secrets import ENVIRONMENT, find_secret
from ldpstream.collector.rounds.store_comparison import compare
from ldpstream.collector.service.opening import (
    check_log,
    check_master,
    find_master,
    is_begun,
    open_archive,
    place_of_store,
)
from ldpstream.collector.store.chain import EVERY
from ldpstream.errors import Mistake
from ldpstream.machine_clock import SystemClock


def refusals(config: Config) -> Iterator[str]:
    """Yield, in one line each, what a collector with this configuration would refuse."""
    for check in (_secrets, _address, _log, _store):
        try:
            yield from check(config)
        except Mistake as mistake:
            yield str(mistake)


def _secrets(config: Config) -> Iterator[str]:
    """Refuse secrets that cannot be read, or are too short."""
    for name in ENVIRONMENT:
        find_secret(name, config.secret_files, config.folder)
    check_master(config)
    yield from ()


def _address(config: Config) -> Iterator[str]:
    """Refuse an address that is not this machine's; its port may be in use by a collector."""
    listen(replace(config, port=0)).close()
    yield from ()


def _log(config: Config) -> Iterator[str]:
    """Refuse a report log that does not answer, or keeps nothing."""
    if config.ingest is not None:
        check_log(config.ingest)
    yield from ()


def _store(config: Config) -> Iterator[str]:
    """Compare the file with its own store, if that is there, and follow what it has released."""
    begun = is_begun(config)  # connects to a database, though there may be no secret yet
    master = find_master(config)
    if master is None and config.database is not None:
        master = token_bytes()  # as `serve` draws one; a database that was begun has another
    if master is None or not begun:
        return
    now_ms = SystemClock().wall_ms()
    with open_archive(place_of_store(config)) as archive:
        chain = archive.chain(master)
        for stream in config.streams:
            refusal = compare(stream, archive, now_ms).refusal
            if refusal is not None:
                yield refusal
        if chain is not None:
            for name in (EVERY, *(stream.name for stream in config.streams)):
                archive.check_releases(chain, name).refuse_damage()
