"""The terms of a stream: its public parameters, which every device pins at enrolment."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, NoReturn

from ldpstream.domain import Domain
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.numeric import BinnedRange, Numeric, Range
from ldpstream.numeric.range import MEAN
from ldpstream.oracles import Oracle
from ldpstream.oracles.device_half import Randomiser
from ldpstream.oracles.tagged.device import Tagged
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.ledger import Promise
from ldpstream.protocol.attributes import Attributes
from ldpstream.protocol.limits import LATEST_MS, TERMS_FORMAT
from ldpstream.protocol.names import is_stream_name, shown, whole
from ldpstream.protocol.slots import group_of
from ldpstream.protocol.strata import (
    MOST_LEVELS,
    Level,
    Succession,
    is_level_name,
    stratum_suffix,
)
from ldpstream.vocabulary import Vocabulary

PLAIN_FORMAT = 2
FIRST_FORMAT = 1
"""That of release 0.1.0, which did not say how users are selected. It is still read."""
LONGEST_WINDOW = 1 << 31
LONGEST_INTERVAL_MS = 1 << 41
"""About 70 years."""
DISTRIBUTION = "distribution"
"""The query of a stream of numbers that releases more than their mean."""
VOCABULARY = "vocabulary"
"""The query of a stream of texts that nobody has listed."""

Values = Domain | Range | Vocabulary
"""What a device may hold: one of these labels, a number in this range, or any text."""
Value = str | float
"""A label by its name or index or, in a stream of numbers, a number; otherwise any text."""

SALT = re.compile(r"[0-9a-f]{16}")
END = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")
"""An end of a range, as a decimal text."""


class SelectionMethod(StrEnum):
    """How a share of the devices is reached (docs/protocol.md)."""

    SLOTS = "slots"
    """Nobody asks: each device reports once in w timestamps, in a slot of its own."""
    OPEN = "open"
    """A rate is announced, and each device selects itself by a coin of its own."""
    ROSTER = "roster"
    """The collector knows its devices, and names those that it asks."""


class TermsRefused(LdpStreamError):
    """The terms are malformed, or not those that were agreed on.

    >>> TermsRefused(Problem.TERMS_DIFFER, given="ab", expected="cd").problem.code
    'terms-differ'
    """


@dataclass(frozen=True)
class Terms:
    """One version of the public terms of a stream; it never changes.

    >>> terms = Terms.read({
    ...     "version": 2, "stream": "regions", "query": "histogram", "labels": ["north", "süd"],
    ...     "epsilon_nano": 10**9, "window": 20, "interval_ms": 60000, "start_ms": 0,
    ...     "oracle": "grr", "selection": "slots", "deadline_ms": 54000})
    >>> terms.pin[:16], terms.timestamp_at(60_000)
    ('dee3420c96f5d61d', 2)
    """

    stream: str
    values: Values
    epsilon: Epsilon
    window: int
    interval_ms: int
    start_ms: int
    oracle: Oracle | Numeric
    other: str | None = None
    """The label that a device reports when it has no usable value, if the stream has one."""
    selection: SelectionMethod | None = None
    """How devices are reached; None in terms of the first version, which do not say."""
    deadline_ms: int | None = None
    """With slots: how long after its start a timestamp takes reports."""
    levels: tuple[Level, ...] = ()
    """The levels of privacy that a person may choose in place of this epsilon and window."""
    succeeds: Succession | None = None
    """Which terms these follow; None for the first terms of a stream."""
    attributes: Attributes | None = None
    """The public attributes that a report tells of its device."""
    level: str = ""
    """The level at which these terms are seen (`at_level`); it is not pinned."""
    whole_terms: Terms | None = None
    """The terms as they are pinned, if these are seen at a level or by a device."""
    tag: int = 0
    """With tags: that of the device by which these terms are seen (`seen_by`); not pinned."""

    @classmethod
    def read(cls, sent: object) -> Terms:
        """Validate what a collector sent. Unknown keys are refused: they could weaken others."""
        if not isinstance(sent, dict):
            _malformed("the keys", sent)
        query = str(sent.get("query"))
        own_keys, optional = _OWN_KEYS.get(query), _OPTIONAL_KEYS.get(query, frozenset())
        optional |= _SELECTION_KEYS
        if query not in (DISTRIBUTION, VOCABULARY):
            optional |= _STRATA_KEYS
        if query != VOCABULARY:
            optional |= _ATTRIBUTES_KEYS
        if own_keys is None or sent.keys() - optional != _COMMON_KEYS | own_keys:
            _malformed("the keys", sorted(map(str, sent)))
        _check("stream", sent, is_stream_name(sent["stream"]))
        _check("window", sent, whole(sent["window"], 1, LONGEST_WINDOW))
        _check("interval_ms", sent, whole(sent["interval_ms"], 1, LONGEST_INTERVAL_MS))
        _check("window", sent, sent["window"] * sent["interval_ms"] <= LATEST_MS)
        _check("start_ms", sent, whole(sent["start_ms"], 0, LATEST_MS))
        _check("epsilon_nano", sent, type(sent["epsilon_nano"]) is int)
        _check("oracle", sent, isinstance(sent["oracle"], str))
        try:
            epsilon = Epsilon(sent["epsilon_nano"])
            values, oracle = _READERS[query](sent)
        except (Mistake, ValueError) as error:
            raise TermsRefused(Problem.TERMS_MALFORMED, what=shown(str(error))) from None
        return cls(
            sent["stream"],
            values,
            epsilon,
            sent["window"],
            sent["interval_ms"],
            sent["start_ms"],
            oracle,
            _other(sent, values),
            *_selection(sent),
            _levels(sent, oracle),
            _succeeds(sent, values),
            _attributes(sent),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the form that `read` parses, at whatever level these terms are seen."""
        if self.whole_terms is not None:
            return self.whole_terms.to_json()
        if isinstance(self.values, Domain):
            values: dict[str, Any] = {"labels": list(self.values.labels)}
        else:
            values = self.values.to_json()
        return {
            "version": self.format,
            "stream": self.stream,
            "query": self.query,
            **values,
            "epsilon_nano": self.epsilon.nano,
            "window": self.window,
            "interval_ms": self.interval_ms,
            "start_ms": self.start_ms,
            "oracle": self.oracle.value,
            **_given(
                other=self.other,
                selection=self.selection,
                deadline_ms=self.deadline_ms,
                levels=[level.to_json() for level in self.levels] or None,
                succeeds=self.succeeds.to_json() if self.succeeds else None,
                attributes=self.attributes.to_json() if self.attributes else None,
            ),
        }

    @property
    def format(self) -> int:
        """The format of the JSON: the oldest one that can say all of this."""
        if self.levels or self.succeeds is not None or self.attributes is not None:
            return TERMS_FORMAT
        return FIRST_FORMAT if self.selection is None else PLAIN_FORMAT

    @property
    def version(self) -> int:
        """The number of these terms among those of the stream, from 1."""
        return 1 if self.succeeds is None else self.succeeds.version

    def has_level(self, name: str) -> bool:
        """Return whether a device may choose this level; the empty name is the stream's own."""
        return not name or any(level.name == name for level in self.levels)

    def at_level(self, name: str) -> Terms:
        """Return these terms as they bind a device at a level: its epsilon, window and oracle."""
        pinned = self.whole_terms or self
        if not name:
            return pinned
        level = next((one for one in pinned.levels if one.name == name), None)
        if level is None:
            known = ", ".join(one.name for one in pinned.levels) or "none"
            raise Mistake(Problem.LEVEL_UNKNOWN, given=shown(name), stream=self.stream, known=known)
        return replace(
            pinned,
            epsilon=level.epsilon,
            window=level.window,
            oracle=level.oracle,
            level=name,
            whole_terms=pinned,
        )

    def seen_by(self, slot_key: bytes, described: Mapping[str, object]) -> Terms:
        """Return these terms as the device of this key sees them, of which this is said.

        With attributes its reports tell which of them it has; with a vocabulary, its group.
        """
        if self.attributes is not None:
            tag = self.attributes.combination(described)
        elif isinstance(self.values, Vocabulary):
            tag = group_of(slot_key, self.tags)
        else:
            return self
        return replace(self, tag=tag, whole_terms=self.whole_terms or self)

    @property
    def tags(self) -> int:
        """How many parts of the fleet reports tell apart by a tag at their end; 0: there is none.

        They are the groups of a vocabulary, or the combinations of attributes.
        """
        if isinstance(self.values, Vocabulary):
            return len(self.values.groups)
        return 0 if self.attributes is None else self.attributes.combinations

    @property
    def strata(self) -> tuple[Terms, ...]:
        """These terms at each of their levels, the stream's own first."""
        return tuple(self.at_level(name) for name in ("", *(one.name for one in self.levels)))

    @property
    def suffix(self) -> str:
        """The end of the names of the rounds under these terms, at this level."""
        return stratum_suffix(self.version, self.level)

    @cached_property
    def canonical(self) -> str:
        """The terms as JSON with sorted keys, no spaces, and only the escapes it requires."""
        return json.dumps(
            self.to_json(),
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
            allow_nan=False,
        )

    @cached_property
    def pin(self) -> str:
        """The SHA-256 of the canonical form, to which a device holds the collector."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()

    @property
    def query(self) -> str:
        if isinstance(self.values, Vocabulary):
            return VOCABULARY
        if isinstance(self.values, BinnedRange):
            return DISTRIBUTION
        return MEAN if isinstance(self.values, Range) else "histogram"

    @property
    def domain(self) -> Domain | None:
        """The labels; None in a stream of numbers or texts."""
        return self.values if isinstance(self.values, Domain) else None

    @property
    def epsilon_nano(self) -> int:
        return self.epsilon.nano

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the released figures, in order; of texts, each release has its own."""
        return names_of(self.values)

    def place(self, value: Value) -> int:
        """Return the index of a value, from 0: of a label by name or index, a number's level, or
        the bucket of a text in the device's group.
        """
        if isinstance(self.values, Range):
            return self.values.level(value)
        if isinstance(self.values, Vocabulary):
            return self.values.bucket(value, self.values.groups[self.tag])
        index = self.values.index(value) if isinstance(value, str) else value
        if type(index) is not int or not 0 <= index < len(self.values):
            size = len(self.values)
            raise Mistake(Problem.VALUE_RANGE, given=value, labels=size, last=size - 1)
        return index

    def randomiser(self, epsilon: Epsilon) -> Randomiser[Any]:
        """Return the randomiser that makes reports with this epsilon."""
        inner = self.oracle.device(len(self.values), epsilon)
        return Tagged(inner, self.tags, self.tag) if self.tags else inner

    @property
    def promise(self) -> Promise:
        """The device's promise: epsilon in any span of w intervals of its own time, in ms."""
        return Promise(self.epsilon_nano, self.window * self.interval_ms)

    def deadline_of(self, t: int) -> int:
        """Return the moment at which timestamp t takes no more reports, with slots."""
        return self.start_of(t) + (self.deadline_ms or self.interval_ms)

    def timestamp_at(self, ms: int) -> int:
        """Return the timestamp at this moment; it is below 1 before the stream starts."""
        return (ms - self.start_ms) // self.interval_ms + 1

    def start_of(self, t: int) -> int:
        """Return the moment at which timestamp t begins."""
        return self.start_ms + (t - 1) * self.interval_ms

    def end_of(self, t: int) -> int:
        """Return the moment at which timestamp t is over."""
        return self.start_of(t + 1)


def names_of(values: Values) -> tuple[str, ...]:
    """Return the names of the figures released for these values, in order."""
    if isinstance(values, Vocabulary):
        return ()
    if isinstance(values, BinnedRange):
        return values.names
    return (MEAN,) if isinstance(values, Range) else values.labels


_COMMON_KEYS = frozenset(
    ["version", "stream", "query", "epsilon_nano", "window", "interval_ms", "start_ms", "oracle"]
)
_OWN_KEYS = {
    "histogram": frozenset({"labels"}),
    MEAN: frozenset({"low", "high", "steps"}),
    DISTRIBUTION: frozenset({"low", "high", "steps", "bins"}),
    VOCABULARY: frozenset({"salt", "bits", "prefixes"}),
}
_OPTIONAL_KEYS = {"histogram": frozenset({"other"})}
_SELECTION_KEYS = frozenset({"selection", "deadline_ms"})
_STRATA_KEYS = frozenset({"levels", "succeeds"})
_ATTRIBUTES_KEYS = frozenset({"attributes"})
_LEVEL_KEYS = frozenset({"name", "epsilon_nano", "window", "oracle"})


def _given(**members: object) -> dict[str, object]:
    """Return the members that are there: a missing one is left out of the JSON."""
    return {name: value for name, value in members.items() if value is not None}


def _selection(sent: dict[str, Any]) -> tuple[SelectionMethod | None, int | None]:
    """Read how devices are reached, and the deadline of slots; check the version by them."""
    selection = sent.get("selection")
    form = FIRST_FORMAT if "selection" not in sent else PLAIN_FORMAT
    newer = sent.keys() & (_STRATA_KEYS | _ATTRIBUTES_KEYS)
    if form == PLAIN_FORMAT and newer:
        form = TERMS_FORMAT
    _check("version", sent, type(sent["version"]) is int and sent["version"] == form)
    if form == FIRST_FORMAT:
        if newer:
            _malformed("the keys", sorted(sent))
    else:
        _check("selection", sent, isinstance(selection, str) and selection in set(SelectionMethod))
    if ("deadline_ms" in sent) != (selection == SelectionMethod.SLOTS):
        _malformed("the keys", sorted(sent))
    if "deadline_ms" in sent:
        _check("deadline_ms", sent, whole(sent["deadline_ms"], 1, sent["interval_ms"]))
    return (None if selection is None else SelectionMethod(selection)), sent.get("deadline_ms")


def _levels(sent: dict[str, Any], oracle: Oracle | Numeric) -> tuple[Level, ...]:
    """Read the levels of privacy; only with slots has each device a window of its own."""
    if "levels" not in sent:
        return ()
    given = sent["levels"]
    _check("levels", sent, isinstance(given, list) and 1 <= len(given) <= MOST_LEVELS)
    _check("levels", sent, sent.get("selection") == SelectionMethod.SLOTS)
    _check("levels", sent, all(_is_level(one, sent) for one in given))
    _check("levels", sent, len({one["name"] for one in given}) == len(given))
    try:
        return tuple(
            Level(
                one["name"],
                Epsilon(one["epsilon_nano"]),
                one["window"],
                type(oracle)(one["oracle"]),
            )
            for one in given
        )
    except (Mistake, ValueError) as error:
        raise TermsRefused(Problem.TERMS_MALFORMED, what=shown(str(error))) from None


def _is_level(given: object, sent: dict[str, Any]) -> bool:
    return (
        isinstance(given, dict)
        and given.keys() == _LEVEL_KEYS
        and is_level_name(given["name"])
        and type(given["epsilon_nano"]) is int
        and isinstance(given["oracle"], str)
        and whole(given["window"], 1, LONGEST_WINDOW)
        and given["window"] * sent["interval_ms"] <= LATEST_MS
    )


def _attributes(sent: dict[str, Any]) -> Attributes | None:
    """Read the public attributes; only with slots does a report say no more than its tag."""
    if "attributes" not in sent:
        return None
    read = Attributes.read(sent["attributes"])
    _check("attributes", sent, read is not None and sent.get("selection") == SelectionMethod.SLOTS)
    return read


def _succeeds(sent: dict[str, Any], values: Values) -> Succession | None:
    if "succeeds" not in sent:
        return None
    read = Succession.read(sent["succeeds"])
    known = frozenset(values.labels) if isinstance(values, Domain) else frozenset()
    if (
        read is None
        or (read.labels is None) == isinstance(values, Domain)
        or not known.issuperset(read.labels or ())
    ):
        _malformed("succeeds", sent["succeeds"])
    return read


def _labels(sent: dict[str, Any]) -> tuple[Domain, Oracle]:
    _check("labels", sent, _are_labels(sent["labels"]))
    return Domain.of(sent["labels"]), Oracle(sent["oracle"])


def _numbers(sent: dict[str, Any]) -> tuple[Range, Numeric]:
    for end in ("low", "high"):
        _check(end, sent, isinstance(sent[end], str) and END.fullmatch(sent[end]) is not None)
    for number in sorted({"steps", "bins"} & sent.keys()):
        _check(number, sent, type(sent[number]) is int)
    values = (BinnedRange if sent["query"] == DISTRIBUTION else Range).from_json(sent)
    for end, text in values.to_json().items():
        _check(end, sent, sent[end] == text)  # else this device would pin another text
    oracle = Numeric(sent["oracle"])
    _check("oracle", sent, "bins" not in sent or oracle is Numeric.SQUARE_WAVE)
    return values, oracle


def _texts(sent: dict[str, Any]) -> tuple[Vocabulary, Oracle]:
    """Read what shapes the reports of texts: with slots only, so that no round says more than t."""
    salt, prefixes = sent["salt"], sent["prefixes"]
    _check("salt", sent, isinstance(salt, str) and SALT.fullmatch(salt) is not None)
    _check("bits", sent, type(sent["bits"]) is int)
    _check("prefixes", sent, isinstance(prefixes, list) and all(type(n) is int for n in prefixes))
    _check("oracle", sent, sent["oracle"] == Oracle.HADAMARD)
    _check("query", sent, sent.get("selection") == SelectionMethod.SLOTS)
    return Vocabulary(int(salt, 16), sent["bits"], tuple(prefixes)), Oracle.HADAMARD


_READERS: dict[str, Callable[[dict[str, Any]], tuple[Values, Oracle | Numeric]]] = {
    "histogram": _labels,
    MEAN: _numbers,
    DISTRIBUTION: _numbers,
    VOCABULARY: _texts,
}


def _other(sent: dict[str, Any], values: Values) -> str | None:
    if not isinstance(values, Domain) or "other" not in sent:
        return None
    other = sent["other"]
    _check("other", sent, isinstance(other, str) and other in values.labels)
    return str(other)


def _are_labels(labels: object) -> bool:
    """Return whether these are strings that UTF-8 can encode: no lone surrogates."""
    return isinstance(labels, list) and all(
        isinstance(label, str) and not any("\ud800" <= sign <= "\udfff" for sign in label)
        for label in labels
    )


def _check(name: str, sent: dict[str, Any], holds: bool) -> None:
    if not holds:
        _malformed(name, sent[name])


def _malformed(name: str, given: object) -> NoReturn:
    raise TermsRefused(Problem.TERMS_MALFORMED, what=f"{name}: {shown(given)}")
