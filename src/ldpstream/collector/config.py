"""The one configuration file of a collector: read once, checked once, then frozen."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, NoReturn

from ldpstream.collector.alerts.rules import Rule, read_rules
from ldpstream.collector.alerts.webhook import check_url
from ldpstream.collector.places import Path as Place
from ldpstream.collector.places import line_of
from ldpstream.collector.terms import names_of
from ldpstream.domain import Domain
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.mechanisms.messages import Purpose
from ldpstream.mechanisms.queries import HISTOGRAM, Mean, Query
from ldpstream.mechanisms.registry import Settings, build
from ldpstream.numeric import Numeric, Range
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon

NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
LEAST_INTERVAL_MS = 100


class Selection(StrEnum):
    """How a share of the devices is reached (docs/collector.md)."""

    ROSTER = "roster"
    OPEN = "open"


@dataclass(frozen=True)
class Limits:
    """What one client may ask of the collector."""

    body_bytes: int = 4 << 20
    """The longest request body."""
    batch: int = 10_000
    """The most reports in one batch."""
    connections: int = 10_000
    """The most requests under way, long polls included; beyond it the answer is 503."""
    waiting: int = 200_000
    """The most reports that wait for the disk; beyond it the answer is 429."""
    enrolments_per_second: int = 1000
    releases: int = 10_000
    """The most releases in one answer."""
    metric_labels: int = 20
    """The most labels of a stream whose frequencies are shown at /metrics."""


@dataclass(frozen=True)
class StreamConfig:
    """One stream, as the file describes it."""

    name: str
    values: Domain | Range
    """What a device may hold: one of these labels, or a number of this range."""
    epsilon: Epsilon
    window: int
    interval_ms: int
    start_ms: int | None
    """None: when the collector first runs it."""
    mechanism: str
    oracle: Oracle | Numeric | None
    """None: the best one for these values and this epsilon."""
    selection: Selection
    population: int
    """How many devices are expected; shares of users are shares of it."""
    deadlines: Mapping[Purpose, float]
    """When rounds close, as a share of the interval."""
    thresholds: Mapping[str, float]
    public: bool
    alerts: tuple[Rule, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of what is released, in order."""
        return names_of(self.values)

    @property
    def query(self) -> Query:
        if isinstance(self.values, Range):
            return Mean(self.values.low, self.values.high)
        return HISTOGRAM

    @property
    def settings(self) -> Settings:
        return Settings(
            labels=self.values.levels if isinstance(self.values, Range) else len(self.values),
            users=self.population,
            epsilon=self.epsilon,
            window=self.window,
            oracle=self.oracle,
            intervals=True,
            query=self.query,
        )


@dataclass(frozen=True)
class Config:
    """A whole file."""

    host: str
    port: int
    store: Path
    secret_files: Mapping[str, Path]
    limits: Limits
    streams: tuple[StreamConfig, ...]
    webhook: str | None = None
    """Who is told of alerts."""
    external_url: str = ""
    """Where readers of alerts find the collector."""

    @property
    def folder(self) -> Path:
        """Where the collector keeps what it writes."""
        return self.store.parent


def load(file: Path) -> Config:
    """Read and check a file; the first thing wrong is refused with its line and the reason."""
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise Mistake(
            Problem.CONFIG_FILE, file=file, line=1, what=what, fix="give a TOML file"
        ) from None
    return parse(text, file)


def parse(text: str, file: Path) -> Config:
    """`load`, for a text that is already there; paths in it are relative to `file`."""
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
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
    root = Table(tree, file, text, ())
    collector = root.table("collector")
    host, port = _address(collector)
    config = Config(
        host=host,
        port=port,
        store=file.parent / collector.text("store", "ldpstream-data/collector.sqlite"),
        secret_files={
            name: file.parent / collector.text(f"{name}_file")
            for name in ("master", "enrolment", "admin")
            if f"{name}_file" in collector
        },
        limits=_limits(collector.table("limits")),
        streams=tuple(_stream(table) for table in root.tables("stream")),
        webhook=_webhook(collector.table("alerts")),
        external_url=collector.table("alerts").text("external_url", "").rstrip("/"),
    )
    if not config.streams:
        root.refuse(None, "there is no stream", "add a [[stream]] table")
    names = [stream.name for stream in config.streams]
    for position, name in enumerate(names):
        if name in names[:position]:
            root.tables("stream")[position].refuse(
                "name", f"name {name!r} is used twice", "give each stream a name of its own"
            )
    root.finish()
    return config


def _address(collector: Table) -> tuple[str, int]:
    listen = collector.text("listen", "127.0.0.1:8080")
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        collector.refuse("listen", f"listen is {listen!r}", "give host:port, as 127.0.0.1:8080")
    return host.strip("[]"), int(port)


def _webhook(table: Table) -> str | None:
    if "webhook" not in table:
        return None
    url = table.text("webhook")
    table.attempt("webhook", lambda: check_url("webhook", url))
    return url


def _limits(table: Table) -> Limits:
    usual = Limits()
    return Limits(
        **{name: table.whole(name, getattr(usual, name), least=1) for name in vars(usual)}
    )


def _stream(table: Table) -> StreamConfig:
    name = table.text("name")
    if not name or not set(name) <= NAME_CHARACTERS or len(name) > 64:
        table.refuse("name", f"name is {name!r}", "give up to 64 of a-z, 0-9, - and _")
    values = _values(table)
    labels = list(names_of(values))
    mechanism = table.text("mechanism", "lpf")
    stream = StreamConfig(
        name=name,
        values=values,
        epsilon=table.attempt("epsilon", lambda: Epsilon.of(table.number("epsilon"))),
        window=table.whole("window", least=1),
        interval_ms=_interval(table),
        start_ms=_start(table),
        mechanism=mechanism,
        oracle=_oracle(table, values),
        selection=Selection(table.choice("selection", tuple(Selection), Selection.OPEN)),
        population=table.whole("population", least=1),
        deadlines=_deadlines(table.table("deadlines")),
        thresholds=_thresholds(table.table("thresholds"), labels),
        public=table.flag("public", True),
        alerts=read_rules(table.tables("alert"), name, labels),
    )
    table.attempt("mechanism", lambda: build(mechanism, stream.settings))
    return stream


def _values(table: Table) -> Domain | Range:
    """`labels`, or `range`: one of the two."""
    if "range" not in table:
        labels = table.strings("labels")
        domain: Domain = table.attempt("labels", lambda: Domain.of(labels))
        return domain
    if "labels" in table:
        table.refuse("range", "a stream has labels or a range", "take one of the two away")
    ends = table.numbers("range", 2)
    numbers: Range = table.attempt("range", lambda: Range(ends[0], ends[1]))
    return numbers


def _oracle(table: Table, values: Domain | Range) -> Oracle | Numeric | None:
    name = table.text("oracle", "auto")
    if name == "auto":
        return None
    kind = Numeric if isinstance(values, Range) else Oracle
    oracle: Oracle | Numeric = table.attempt("oracle", lambda: kind.named(name))
    return oracle


def _interval(table: Table) -> int:
    return table.duration("interval", least_ms=LEAST_INTERVAL_MS)


def _start(table: Table) -> int | None:
    given = table.get("start", None)
    if given is None:
        return None
    if not isinstance(given, datetime) or given.tzinfo is None:
        table.refuse(
            "start", f"start is {given}", "give a date and time with offset: 2030-01-01T00:00:00Z"
        )
    return int(given.timestamp() * 1000)


def _deadlines(table: Table) -> dict[Purpose, float]:
    usual = {Purpose.DISSIMILARITY: 0.45, Purpose.PUBLICATION: 0.9}
    deadlines = {purpose: table.number(purpose, share) for purpose, share in usual.items()}
    for purpose, share in deadlines.items():
        if not 0 < share <= 1:
            table.refuse(purpose, f"{purpose} is {share}", "give a share of the interval, 0 to 1")
    if deadlines[Purpose.DISSIMILARITY] >= deadlines[Purpose.PUBLICATION]:
        table.refuse(
            Purpose.PUBLICATION,
            "the publication round would close before the dissimilarity round",
            "give it the later deadline",
        )
    return deadlines


def _thresholds(table: Table, labels: list[str]) -> dict[str, float]:
    for label in table:
        if label not in labels:
            table.refuse(label, f"{label!r} is no label", f"use one of: {', '.join(labels[:8])}")
    return {label: table.number(label) for label in labels if label in table}


@dataclass
class Table:
    """A table of the file: hands out checked values, and knows in the end what nobody asked for."""

    values: dict[str, Any]
    file: Path
    text_of_file: str
    place: Place
    asked: set[str] = field(default_factory=set)
    inner: list[Table] = field(default_factory=list)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def __iter__(self) -> Any:
        return iter(self.values)

    def refuse(self, name: str | None, what: str, fix: str) -> NoReturn:
        place = self.place if name is None else (*self.place, str(name))
        line = line_of(self.text_of_file, place)
        raise Mistake(Problem.CONFIG_FILE, file=self.file, line=line, what=what, fix=fix)

    def attempt(self, name: str, make: Callable[[], Any]) -> Any:
        """Let another part of the package judge a value, and say on which line it stands."""
        try:
            return make()
        except LdpStreamError as error:
            if error.problem is Problem.CONFIG_FILE:
                raise
            what, _, fix = str(error).partition("; ")
            self.refuse(name, what, fix)

    def get(self, name: str, default: Any = ...) -> Any:
        self.asked.add(name)
        if name not in self.values and default is ...:
            self.refuse(None, f"{name} is missing", "add it")
        return self.values.get(name, default)

    def _typed(self, name: str, default: Any, kinds: tuple[type, ...], expected: str) -> Any:
        value = self.get(name, default)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            self.refuse(name, f"{name} is {value!r}", f"give {expected}")
        return value

    def text(self, name: str, default: Any = ...) -> str:
        return str(self._typed(name, default, (str,), "a text in quotes"))

    def flag(self, name: str, default: bool) -> bool:
        return bool(self._typed(name, default, (bool,), "true or false"))

    def number(self, name: str, default: Any = ...) -> float:
        value: float = self._typed(name, default, (int, float), "a number")
        return value

    def whole(self, name: str, default: Any = ..., *, least: int) -> int:
        value: int = self._typed(name, default, (int,), "a whole number")
        if value < least:
            self.refuse(name, f"{name} is {value}", f"give a whole number, {least} or more")
        return value

    def duration(self, name: str, default: Any = ..., *, least_ms: int = 0) -> int:
        """Milliseconds, from a whole number and a unit."""
        given = self.text(name, default)
        digits = given.rstrip("abcdefghijklmnopqrstuvwxyz")
        unit = UNITS_MS.get(given[len(digits) :].strip())
        if not digits.strip().isdigit() or unit is None or int(digits) * unit < least_ms:
            least = f", at least {least_ms}ms" if least_ms else ""
            units = ", ".join(UNITS_MS)
            self.refuse(
                name, f"{name} is {given!r}", f"give a whole number and one of {units}{least}"
            )
        return int(digits) * unit

    def choice(self, name: str, known: tuple[str, ...], default: str) -> str:
        value = self.text(name, default)
        if value not in known:
            self.refuse(name, f"{name} is {value!r}", f"use one of: {', '.join(known)}")
        return value

    def strings(self, name: str) -> list[str]:
        values: list[Any] = self._typed(name, ..., (list,), "a list of texts")
        for value in values:
            if not isinstance(value, str):
                self.refuse(name, f"{name} has {value!r} in it", "give texts in quotes only")
        return values

    def numbers(self, name: str, how_many: int) -> list[float]:
        values: list[Any] = self._typed(name, ..., (list,), f"a list of {how_many} numbers")
        if len(values) != how_many or any(type(value) not in (int, float) for value in values):
            self.refuse(name, f"{name} is {values!r}", f"give a list of {how_many} numbers")
        return values

    def table(self, name: str) -> Table:
        values = self._typed(name, {}, (dict,), f"a table: [{name}]")
        return self._within(values, (*self.place, name))

    def tables(self, name: str) -> list[Table]:
        values = self._typed(name, [], (list,), f"tables: [[{name}]]")
        return [
            self._within(value, (*self.place, name, position))
            for position, value in enumerate(values)
        ]

    def _within(self, values: dict[str, Any], place: Place) -> Table:
        for table in self.inner:
            if table.place == place:
                return table
        self.inner.append(Table(values, self.file, self.text_of_file, place))
        return self.inner[-1]

    def finish(self) -> None:
        """Refuse the first key that has no meaning."""
        for name in self.values:
            if name not in self.asked:
                known = ", ".join(sorted(self.asked))
                self.refuse(name, f"there is no key {name!r} here", f"use one of: {known}")
        for table in self.inner:
            table.finish()
