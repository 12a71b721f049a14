"""One stream of the configuration: a [[stream]] table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from ldpstream.collector.alerts.conditions import Threshold
from ldpstream.collector.alerts.rules import Rule
from ldpstream.collector.config.alert_rules import read_request, read_rules
from ldpstream.collector.config.attributes import LEAST_GROUP, read_attributes
from ldpstream.collector.config.levels import LevelConfig, read_levels, read_window
from ldpstream.collector.config.privacy_notice import PrivacyNotice, read_notice
from ldpstream.collector.config.retention import read_retention
from ldpstream.collector.config.successor import SuccessorConfig, read_successor
from ldpstream.collector.config.table import ConfigTable, nearest
from ldpstream.collector.config.table import written as as_written
from ldpstream.collector.config.toml_lines import line_of
from ldpstream.collector.config.vocabulary import (
    TOP,
    OpenVocabulary,
    planned_vocabulary,
    read_candidates,
    read_top,
    read_vocabulary,
)
from ldpstream.collector.releases.retention import KEEP_ALL, Retention
from ldpstream.collector.store.groups import written
from ldpstream.domain import Domain
from ldpstream.mechanisms.following import KEPT_WINDOWS
from ldpstream.mechanisms.messages import Purpose
from ldpstream.mechanisms.queries import Query, query_of
from ldpstream.mechanisms.registry import build, report_epsilon, takes_slots, usual_selection
from ldpstream.mechanisms.settings import Settings
from ldpstream.numeric import BinnedRange, Numeric, Range
from ldpstream.numeric.range import MEAN, QUANTILES
from ldpstream.oracles import Oracle
from ldpstream.oracles.gain import choose_robust
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.attributes import Attributes
from ldpstream.protocol.names import STREAM_NAME, is_stream_name
from ldpstream.protocol.notice import Halt
from ldpstream.protocol.terms import DISTRIBUTION, END, SelectionMethod, Values, names_of
from ldpstream.vocabulary import Vocabulary

BEST, ROBUST = "auto", "robust"
"""Instead of an oracle's name: the one with the least noise, or least open to poisoning."""
AUTO = "auto"
"""Instead of a population: follow the fleet."""
FIRST_POPULATION = 1000
"""The population that is expected before the first report, where nobody says how many there are."""
LEAST_INTERVAL_MS = 100
BINS = 32
"""The bins of a distribution, unless the file says how many."""
ANY_ORIGIN = "*"
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?")
"""An origin as browsers write it; pages of extensions have schemes of their own."""


@dataclass(frozen=True)
class Suspicion:
    """The settings for suspect rounds: when a round is suspect, and what is done."""

    false_alarm: float = 1e-6
    """The largest probability of a false alarm in a round of honest devices; 0: no alarms."""
    discard: bool = False
    """Whether a suspect round counts as if nobody had answered. Fake devices can then silence
    rounds, instead of distorting them."""


@dataclass(frozen=True)
class StreamLocation:
    """The position of a stream in its file."""

    file: Path = Path()
    lines: Mapping[str, int] = field(default_factory=dict)
    """The line of each key, and of the table itself under the empty name."""

    @classmethod
    def of(cls, table: ConfigTable) -> StreamLocation:
        lines = {key: line_of(table.text_of_file, (*table.place, key)) for key in table}
        return cls(table.file, {"": line_of(table.text_of_file, table.place)} | lines)

    def line(self, key: str) -> int:
        """Return the line of a key; that of the table if it is not given."""
        return self.lines.get(key, self.lines.get("", 1))


@dataclass(frozen=True)
class StreamConfig:
    """One stream, as the file describes it."""

    name: str
    values: Values
    """What a device may hold: one of these labels, a number of this range, or any text."""
    epsilon: Epsilon
    window: int
    interval_ms: int
    start_ms: int | None
    """None stands for the time when the collector first runs the stream."""
    mechanism: str
    oracle: Oracle | Numeric | None
    """None stands for the best one for these values and this epsilon."""
    selection: SelectionMethod
    population: int
    """How many devices are expected; shares of users are shares of it. If it follows the fleet,
    what is expected at first."""
    deadlines: Mapping[Purpose, float]
    """When rounds close, as a share of the interval."""
    thresholds: Mapping[str, float]
    public: bool
    alerts: tuple[Rule, ...] = ()
    public_enrolment: bool = False
    """Whether devices may enrol without the token."""
    suspicion: Suspicion = Suspicion()
    """When a round looks manipulated, and what follows."""
    other: str | None = None
    """The label that a device reports when it has no usable value."""
    allowed_origins: frozenset[str] = frozenset()
    """Of pages whose scripts may use the stream's routes for devices and readers; "*": of all."""
    selection_given: bool = True
    """Whether the file says how devices are reached; otherwise it is what suits the mechanism."""
    levels: tuple[LevelConfig, ...] = ()
    """The levels of privacy that a person may choose in place of this epsilon and window."""
    attributes: Attributes | None = None
    """The public attributes by which figures are broken down."""
    least_group: int = LEAST_GROUP
    """The fewest devices, heard in a window, of a group that is shown by itself."""
    successor: SuccessorConfig | None = None
    """How these terms follow those that the store has, if they differ."""
    follows_fleet: bool = False
    """Whether the population is counted from the reports, and not given."""
    paused: bool = False
    """Whether no rounds are opened until somebody says otherwise."""
    retired: bool = False
    """Whether no rounds are opened any more; what was released stays to be read."""
    retention: Retention = KEEP_ALL
    """How long releases and their summaries are kept."""
    notice: PrivacyNotice | None = None
    """What the operator tells the participants."""
    vocabulary: OpenVocabulary | None = None
    """What the file says of a stream of texts, where the store decides the rest."""
    candidates: tuple[str, ...] = ()
    """Texts that are looked for besides those that are found."""
    top: int = TOP
    """How many texts a release has at most."""
    source: StreamLocation = field(default_factory=StreamLocation, compare=False)

    @property
    def halt(self) -> Halt | None:
        """Why no rounds are opened, or None if they are."""
        if self.retired:
            return Halt.RETIRED
        return Halt.PAUSED if self.paused else None

    @property
    def least_population(self) -> int:
        """The fewest devices that every mechanism can divide among its timestamps."""
        return 2 * max([self.window, *(level.window for level in self.levels)])

    @property
    def slot_deadline_ms(self) -> int | None:
        """How long after its start a timestamp takes reports, with slots."""
        if self.selection is not SelectionMethod.SLOTS:
            return None
        return max(1, int(self.deadlines[Purpose.PUBLICATION] * self.interval_ms))

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of what is released, in order."""
        return names_of(self.values)

    def missing(self, rule: Rule) -> str | None:
        """Return the label or group of a rule that releases no longer have, or None."""
        if rule.label is not None and self.vocabulary is None and rule.label not in self.labels:
            return f"label {rule.label!r}"
        return f"group {rule.group!r}" if rule.group and rule.group not in self.groups else None

    @property
    def has_changes(self) -> bool:
        """Whether changes of level are looked for: not in a distribution, nor among texts."""
        return not isinstance(self.values, BinnedRange | Vocabulary)

    @property
    def reach(self) -> int:
        """The timestamps that figures rest on, which are never pruned."""
        windows = max([self.window, *(level.window for level in self.levels)])
        return windows if self.vocabulary is None else KEPT_WINDOWS * windows

    def alert_rule(self, given: dict[str, Any], *, kept: bool = False) -> Rule:
        """Read a rule that the API is given, with the keys of the file.

        One that is kept from before may be about a label, or a group, that is gone.
        """
        gone = [str(given["label"])] if kept and "label" in given else []
        lost = [str(given["group"])] if kept and "group" in given else []
        labels = [*self.labels, *gone] if self.vocabulary is None else None
        changes = self.has_changes or kept
        return read_request(given, self.name, labels, [*self.groups, *lost], changes=changes)

    @property
    def groups(self) -> list[str]:
        """The groups of devices that have figures of their own, as rules name them."""
        return [] if self.attributes is None else [*map(written, self.attributes.groups)]

    @property
    def figures(self) -> int:
        """The most figures of a release, of the fleet and all groups."""
        return (len(self.labels) or self.top) * (1 + len(self.groups))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings to consider before the stream begins; a guessed population gives none."""
        unreachable = (*self._unreachable(),)
        if self.attributes is None or self.follows_fleet:
            return unreachable
        warning = self.attributes.warning(self.population)
        return unreachable if warning is None else (warning, *unreachable)

    def _unreachable(self) -> Iterator[str]:
        """Yield an error for each threshold that no figure can cross."""
        given = [(f"the threshold of {one}", one, level) for one, level in self.thresholds.items()]
        for rule in self.alerts:
            if isinstance(rule.condition, Threshold):
                at = rule.condition
                given.append((f"alert {rule.name!r}", at.label, at.threshold))
        for what, label, level in given:
            least, most = 0.0, 1.0
            if isinstance(self.values, Range) and (label in QUANTILES or label == MEAN):
                least, most = self.values.low, self.values.high
            if not least <= level <= most:
                yield f"{what} is at {level:g}, and its figure is between {least:g} and {most:g}"

    @property
    def query(self) -> Query:
        return query_of(self.values)

    @property
    def settings(self) -> Settings:
        return Settings(
            # A mechanism sees the texts that are followed, of which there are two or more.
            labels=len(self.values) if self.vocabulary is None else 2,
            users=self.population,
            epsilon=self.epsilon,
            window=self.window,
            oracle=self.oracle,
            intervals=True,
            query=self.query,
            selection=self.selection,
        )

    def oracle_at(self, level: LevelConfig | None = None) -> Oracle | Numeric:
        """Return the oracle of the stream, or of a level: the one that is named, or the best."""
        at = self.settings
        if level is not None:
            at = replace(at, epsilon=level.epsilon, window=level.window, oracle=level.oracle)
        return self.query.noise(at, report_epsilon(self.mechanism, at)).oracle


STREAM_KEYS = frozenset(
    {
        "alert",
        "allowed_origins",
        "attributes",
        "bins",
        "bits",
        "candidates",
        "candidates_file",
        "deadlines",
        "epsilon",
        "interval",
        "labels",
        "least_group",
        "level",
        "mechanism",
        "name",
        "notice",
        "oracle",
        "other",
        "paused",
        "population",
        "prefixes",
        "public",
        "public_enrolment",
        "query",
        "range",
        "retention",
        "retired",
        "salt",
        "selection",
        "start",
        "successor",
        "suspicion",
        "thresholds",
        "top",
        "vocabulary",
        "window",
    }
)
"""All keys of a [[stream]] table, which are known before it is read."""


def read_stream(table: ConfigTable) -> StreamConfig:
    name = table.text("name")
    if not is_stream_name(name):
        table.refuse("name", f"name is {name!r}", f"give {STREAM_NAME}")
    vocabulary, population = read_vocabulary(table), _population(table)
    epsilon = table.attempt("epsilon", lambda: Epsilon.of(table.number("epsilon")))
    values: Values = (
        _values(table)
        if vocabulary is None
        else planned_vocabulary(table, vocabulary, population, epsilon)
    )
    interval_ms = _interval(table)
    mechanism = table.text("mechanism", "lpf")
    stream = StreamConfig(
        name=name,
        values=values,
        epsilon=epsilon,
        window=read_window(table, interval_ms),
        interval_ms=interval_ms,
        start_ms=_start(table),
        mechanism=mechanism,
        oracle=_oracle(table, values),
        selection=SelectionMethod.OPEN,
        population=population or 0,
        follows_fleet=population is None,
        paused=table.flag("paused", False),
        retired=table.flag("retired", False),
        deadlines=_deadlines(table.table("deadlines")),
        thresholds=_thresholds(table.table("thresholds"), list(names_of(values))),
        public=table.flag("public", True),
        public_enrolment=_public_enrolment(table),
        suspicion=_suspicion(table.table("suspicion")),
        other=_other(table, values),
        allowed_origins=_origins(table),
        selection_given="selection" in table,
        notice=read_notice(table),
        vocabulary=vocabulary,
        candidates=() if vocabulary is None else read_candidates(table),
        top=TOP if vocabulary is None else read_top(table),
        source=StreamLocation.of(table),
    )
    stream = _with_population(stream)
    table.attempt("mechanism", lambda: build(mechanism, stream.settings))
    _check_distribution(table, stream)
    stream = _with_parts(table, stream)
    for level, given in zip(stream.levels, table.tables("level"), strict=True):
        longest = replace(stream.settings, window=level.window)
        given.attempt("window", partial(build, mechanism, longest))
    return _robust(table, stream) if table.text("oracle", BEST) == ROBUST else stream


def _with_parts(table: ConfigTable, stream: StreamConfig) -> StreamConfig:
    """Return the stream with the settings that depend on its selection: levels, groups and more.

    Alerts may be about groups, and what is kept reaches as far back as the longest window.
    """
    selection, values = _selection(table, stream.mechanism), stream.values
    stream = replace(
        stream,
        selection=selection,
        levels=read_levels(
            table.tables("level"),
            selection,
            stream.interval_ms,
            partial(_level_oracle, table, values),
        ),
        attributes=read_attributes(table.table("attributes"), selection, len(values)),
        least_group=table.whole("least_group", LEAST_GROUP, least=1),
        successor=read_successor(table, values.labels if isinstance(values, Domain) else None),
    )
    labels = list(stream.labels) if stream.vocabulary is None else None
    rules = read_rules(
        table.tables("alert"), stream.name, labels, stream.groups, changes=stream.has_changes
    )
    stream = _with_population(replace(stream, alerts=rules))
    retention = read_retention(table.table("retention"), stream.interval_ms, stream.reach)
    return replace(stream, retention=retention)


def _population(table: ConfigTable) -> int | None:
    """Read `population`: how many devices are expected, or None to follow the fleet."""
    if table.get("population", AUTO) == AUTO:
        return None
    if isinstance(table.get("population"), str):
        given = table.text("population")
        table.refuse("population", f"population is {given!r}", f'give a number, or "{AUTO}"')
    return table.whole("population", least=1)


def _with_population(stream: StreamConfig) -> StreamConfig:
    """Return the stream with its first expected population, if that follows the fleet."""
    if not stream.follows_fleet:
        return stream
    return replace(stream, population=max(FIRST_POPULATION, stream.least_population))


def _values(table: ConfigTable) -> Domain | Range:
    """Read `labels` or `range`, one of which must be given."""
    if "range" not in table:
        labels = table.strings("labels")
        domain: Domain = table.attempt("labels", lambda: Domain.of(labels))
        return domain
    if "labels" in table:
        table.refuse("range", "a stream has labels or a range", "remove one of the two")
    ends = table.numbers("range", 2)
    if table.choice("query", (MEAN, DISTRIBUTION), MEAN) == DISTRIBUTION:
        bins = table.whole("bins", BINS, least=2)
        binned: Range = table.attempt("bins", lambda: BinnedRange.of(ends[0], ends[1], bins))
        return _with_ends(table, binned)
    numbers: Range = table.attempt("range", lambda: Range(ends[0], ends[1]))
    return _with_ends(table, numbers)


def _with_ends(table: ConfigTable, numbers: Range) -> Range:
    """The range, if its ends are short enough for terms, which write them without exponents."""
    for end in ("low", "high"):
        if END.fullmatch(numbers.to_json()[end]) is None:
            what = f"range has the end {getattr(numbers, end)}"
            table.refuse("range", what, "give at most 18 digits before the point and 18 after it")
    return numbers


def _check_distribution(table: ConfigTable, stream: StreamConfig) -> None:
    """Refuse settings that need reports of several widths, which cannot be combined."""
    if not isinstance(stream.values, BinnedRange):
        return
    if report_epsilon(stream.mechanism, stream.settings) != stream.epsilon:
        what = f"a distribution needs all of epsilon in each report, unlike {stream.mechanism}"
        table.refuse("mechanism", what, 'set mechanism = "lpf", or another that divides devices')
    for key, what in (("level", "levels"), ("successor", "a successor")):
        if key in table:
            table.refuse(key, f"a distribution cannot have {what}", "leave it out")


def _other(table: ConfigTable, values: Values) -> str | None:
    """Read `other`: one of the labels, or None."""
    if table.get("other", None) is None:
        return None
    label = table.text("other")
    if not isinstance(values, Domain):
        table.refuse("other", "other is a label, and a stream of numbers has none", "leave it out")
    table.attempt("other", lambda: values.index(label))
    return label


def _selection(table: ConfigTable, mechanism: str) -> SelectionMethod:
    """Read `selection`: slots by default, where the mechanism takes them, otherwise open."""
    found = SelectionMethod(
        table.choice("selection", tuple(SelectionMethod), usual_selection(mechanism))
    )
    if found is SelectionMethod.SLOTS and not takes_slots(mechanism):
        what = f"{mechanism} must ask devices, and with slots nobody asks"
        table.refuse("selection", what, 'set mechanism = "lpf" or "lpu", or selection = "open"')
    return found


def _oracle(table: ConfigTable, values: Values) -> Oracle | Numeric | None:
    if isinstance(values, Vocabulary):
        return Oracle.HADAMARD
    name = table.text("oracle", BEST)
    if name in (BEST, ROBUST):
        return None
    oracle: Oracle | Numeric = table.attempt("oracle", lambda: query_of(values).oracle(name))
    return oracle


def _level_oracle(
    stream: ConfigTable, values: Values, table: ConfigTable, epsilon: Epsilon
) -> Oracle | Numeric | None:
    """Read the oracle of a level, for reports of all of its epsilon."""
    usual = ROBUST if stream.text("oracle", BEST) == ROBUST else BEST
    if table.text("oracle", usual) != ROBUST:
        return _oracle(table, values)
    _refuse_robust_numbers(table, values)
    return choose_robust(len(values), epsilon)


def _refuse_robust_numbers(table: ConfigTable, values: Values) -> None:
    if isinstance(values, Range):
        fix = "name one, or leave it to auto"
        table.refuse("oracle", "there is no robust oracle for numbers", fix)


def _robust(table: ConfigTable, stream: StreamConfig) -> StreamConfig:
    """The stream with the oracle that fake devices can distort least."""
    _refuse_robust_numbers(table, stream.values)
    share = report_epsilon(stream.mechanism, stream.settings)
    return replace(stream, oracle=choose_robust(len(stream.values), share))


def _suspicion(table: ConfigTable) -> Suspicion:
    usual = Suspicion()
    rate = table.number("false_alarm", usual.false_alarm)
    if not 0 <= rate < 1:
        table.refuse("false_alarm", f"false_alarm is {rate}", "give a probability, 0 for no alarm")
    return Suspicion(rate, table.flag("discard", usual.discard))


def _public_enrolment(table: ConfigTable) -> bool:
    """Return whether anyone may enrol: off unless the file itself says public = true.

    By default anyone may read a stream, but that is not to take part in it.
    """
    public = table.flag("public", True)
    allowed = table.flag("public_enrolment", "public" in table and public)
    if allowed and not public:
        table.refuse(
            "public_enrolment",
            "anyone could enrol in a stream that is not public",
            "leave it out, or set public = true",
        )
    return allowed


def _origins(table: ConfigTable) -> frozenset[str]:
    """Read `allowed_origins`: a list, or "*" for all."""
    if "allowed_origins" not in table:
        return frozenset()
    if table.get("allowed_origins") == ANY_ORIGIN:
        return frozenset({ANY_ORIGIN})
    origins = table.strings("allowed_origins")
    for origin in origins:
        if _ORIGIN.fullmatch(origin) is None:
            fix = 'give origins as "https://app.example", in lower case, or "*" instead of the list'
            table.refuse("allowed_origins", f"allowed_origins has {origin!r} in it", fix)
    return frozenset(origins)


def _interval(table: ConfigTable) -> int:
    return table.duration("interval", least_ms=LEAST_INTERVAL_MS)


def _start(table: ConfigTable) -> int | None:
    given = table.get("start", None)
    if given is None:
        return None
    if not isinstance(given, datetime) or given.tzinfo is None:
        fix = "give a date and time with offset: 2030-01-01T00:00:00Z"
        table.refuse("start", f"start is {as_written(given)}", fix)
    start_ms = int(given.timestamp() * 1000)
    if start_ms < 0:
        table.refuse("start", f"start is {given}", "give a date from 1970 on")
    return start_ms


def _deadlines(table: ConfigTable) -> dict[Purpose, float]:
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


def _thresholds(table: ConfigTable, labels: list[str]) -> dict[str, float]:
    for label in table:
        if label not in labels:
            table.refuse(
                label, f"{label!r} is not a label", f"use one of: {nearest(label, labels)}"
            )
    return {label: table.number(label) for label in labels if label in table}
