"""The whole configuration file: the collector's own settings, and its streams."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import NoReturn

from ldpstream.collector.alerts.webhook import check_url
from ldpstream.collector.config.stream import STREAM_KEYS, StreamConfig, read_stream
from ldpstream.collector.config.table import ConfigTable, is_number
from ldpstream.collector.report_log.contract import LogSettings
from ldpstream.collector.store.database import Database
from ldpstream.durations import HOUR_MS
from ldpstream.errors import Mistake, Problem

LEAST_LEASE_MS = 500
LEAST_RETENTION = 2
"""Intervals that a log must keep reports: a round takes up to one, and may be counted late."""


@dataclass(frozen=True)
class Limits:
    """What one client may ask of the collector."""

    body_bytes: int = 4 << 20
    """The longest request body."""
    batch: int = 10_000
    """The most reports in one batch."""
    connections: int = 10_000
    """The most connections. Beyond it those that are idle make room; if none is: 429."""
    connections_per_address: int = 2500
    """From one address (IPv6: one /64) that is no trusted proxy; beyond it: 429."""
    receiving_bytes: int = 64 << 20
    """Bodies that are being received. Beyond it the oldest unfinished one is cut off."""
    waiting_bytes: int = 64 << 20
    """Reports that wait for the disk; beyond it: 429."""
    unread_bytes: int = 64 << 20
    """Answers that wait to be read. Beyond it the oldest connection is cut off."""
    enrolments_per_second: int = 1000
    public_enrolments_per_minute: int = 10
    """From one address, where no token is needed."""
    releases: int = 10_000
    """The most releases in one answer."""
    metric_labels: int = 20
    """The most labels of a stream whose frequencies are shown at /metrics."""


@dataclass(frozen=True)
class Config:
    """A whole configuration file."""

    host: str
    port: int
    store: Path
    """The file of the store; with a database only its folder matters."""
    secret_files: Mapping[str, Path]
    limits: Limits
    streams: tuple[StreamConfig, ...]
    webhook: str | None = None
    """The URL to which alerts are sent."""
    external_url: str = ""
    """The address of the collector in messages about alerts."""
    database: Database | None = None
    """The store, if it is not a file."""
    ingest: LogSettings | None = None
    """The log that takes the reports, if the store does not."""
    lease_ms: int = 5000
    """How long a collector leads a stream without renewing its lease."""
    file: Path = Path()
    """Where all of this was read."""

    @property
    def folder(self) -> Path:
        """The folder of all files that the collector writes."""
        return self.store.parent


def load(file: Path) -> Config:
    """Read and check a file; the first mistake is refused with its line and the reason."""
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise Mistake(Problem.DATA_FILE, file=file, what=what, fix="give a TOML file") from None
    return parse(text, file)


def parse(text: str, file: Path) -> Config:
    """Check the text of a file like `load`; paths in it are relative to `file`."""
    try:
        tree = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not TOML, endless digits, endless brackets
        what, _, place = str(error).rpartition(" (at ")
        line = place.removeprefix("line ").split(",")[0]
        known = line if line.isdigit() else text.count("\n") + 1
        raise Mistake(
            Problem.CONFIG_FILE,
            file=file,
            line=known,
            what=what or str(error),
            fix="see the TOML specification",
        ) from None
    root = ConfigTable(tree, file, text, ())
    collector = root.table("collector")
    host, port = _address(collector)
    store, database = _store(collector)
    config = Config(
        host=host,
        port=port,
        store=file.parent / store,
        database=database,
        ingest=_ingest(collector, database),
        lease_ms=collector.duration("lease", "5s", least_ms=LEAST_LEASE_MS),
        secret_files={
            name: file.parent / collector.text(f"{name}_file")
            for name in ("master", "enrolment", "admin")
            if f"{name}_file" in collector
        },
        limits=_limits(collector.table("limits")),
        streams=tuple(read_stream(table) for table in root.tables("stream", STREAM_KEYS)),
        webhook=_webhook(collector.table("alerts")),
        external_url=collector.table("alerts").text("external_url", "").rstrip("/"),
        file=file,
    )
    if not config.streams:
        _refuse_without_streams(root)
    names = [stream.name for stream in config.streams]
    for position, name in enumerate(names):
        if name in names[:position]:
            root.tables("stream")[position].refuse(
                "name", f"name {name!r} is used twice", "give each stream a name of its own"
            )
    if config.ingest is not None:
        for stream, table in zip(config.streams, root.tables("stream"), strict=True):
            if stream.vocabulary is not None:
                what = "a report log does not count texts"
                table.refuse("vocabulary", what, "leave ingest out, or give the stream labels")
        _check_retention(config.ingest, root.tables("stream"))
    root.finish()
    return config


def _refuse_without_streams(root: ConfigTable) -> NoReturn:
    """Refuse a file without streams; tables of another name may be meant as such."""
    for name, value in root.values.items():
        if name not in root.asked and isinstance(value, list):
            what = f"there is no stream, and no key {name!r} here"
            root.refuse(name, what, "did you mean [[stream]]?")
    root.refuse(None, "there is no stream", "add a [[stream]] table")


def _address(collector: ConfigTable) -> tuple[str, int]:
    listen = collector.text("listen", "127.0.0.1:8080")
    host, _, port = listen.rpartition(":")
    if not host or not is_number(port) or int(port) > 65535:
        collector.refuse("listen", f"listen is {listen!r}", "give host:port, as 127.0.0.1:8080")
    return host.strip("[]"), int(port)


def _store(collector: ConfigTable) -> tuple[str, Database | None]:
    """The store's file and database; with a database, the file's folder is for secrets only."""
    file = "ldpstream-data/collector.sqlite"
    store = collector.text("store", file)
    if "://" not in store:
        return store, None
    return file, collector.attempt("store", lambda: Database(store))


def _ingest(collector: ConfigTable, database: Database | None) -> LogSettings | None:
    """The settings of a log for reports, if there is one; its tallies go to the database."""
    log = collector.table("log")
    if "ingest" not in collector:
        if "log" in collector:
            collector.refuse("log", "log has no effect without ingest", "give ingest as well")
        return None
    url = collector.text("ingest")
    if not url.startswith(("nats://", "tls://")):
        collector.refuse("ingest", f"ingest is {url!r}", "give nats://host:4222")
    if database is None:
        fix = 'set store = "postgresql://user@host/name", or leave ingest out'
        collector.refuse("ingest", "ingest needs a store on PostgreSQL", fix)
    return LogSettings(
        url,
        retention_hours=log.duration("retention", "24h", least_ms=60_000) / HOUR_MS,
        replicas=log.whole("replicas", 1, least=1),
    )


def _check_retention(log: LogSettings, streams: list[ConfigTable]) -> None:
    """Refuse a retention with which reports could expire before their round is counted."""
    for stream in streams:
        least_hours = LEAST_RETENTION * stream.duration("interval") / HOUR_MS
        if log.retention_hours < least_hours:
            stream.refuse(
                "interval",
                f"the log keeps reports for {log.retention_hours:g}h,"
                f" less than {LEAST_RETENTION} intervals",
                f"set retention of the log to {ceil(least_hours)}h or more, or a shorter interval",
            )


def _webhook(table: ConfigTable) -> str | None:
    if "webhook" not in table:
        return None
    url = table.text("webhook")
    table.attempt("webhook", lambda: check_url("webhook", url))
    return url


def _limits(table: ConfigTable) -> Limits:
    usual = Limits()
    return Limits(
        **{name: table.whole(name, getattr(usual, name), least=1) for name in vars(usual)}
    )
