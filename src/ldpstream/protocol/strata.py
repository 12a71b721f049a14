"""The strata of a stream: versions of its terms, and levels of privacy, tell its devices apart.

A *stratum* is the part of a fleet that reports under one version of the terms at one level. Each
stratum has rounds of its own, which are named after it (docs/protocol.md).

>>> stratum_suffix(1, ""), stratum_suffix(2, ""), stratum_suffix(2, "careful")
('', '-v2', '-v2-careful')
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ldpstream.numeric import Numeric
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.names import whole

STANDARD = "standard"
"""What people read in place of the empty name of a stream's own level."""
MOST_LEVELS = 16
LATEST_VERSION = 1 << 31
LEVEL_NAME = "1 to 16 of a-z and 0-9, the first of them a letter, and no v with digits only"

_LEVEL = re.compile(r"(?!v[0-9]+$)[a-z][a-z0-9]{0,15}")
_PIN = re.compile(r"[0-9a-f]{64}")
_ROUND = re.compile(
    r"([1-9][0-9]{0,15})-[a-z]+(?:-[0-9]+)?"
    r"(?:-v([2-9]|[1-9][0-9]{1,9}))?(?:-([a-z][a-z0-9]{0,15}))?"
)
"""The names that `round_name` makes; what else a round may be called, `is_round_name` says."""


def is_level_name(name: object) -> bool:
    """Return whether a level may have this name: it must not read like a version.

    >>> is_level_name("careful"), is_level_name("v2"), is_level_name("a-b")
    (True, False, False)
    """
    return isinstance(name, str) and _LEVEL.fullmatch(name) is not None


def is_pin(pin: object) -> bool:
    """Return whether this has the form of a pin: 64 hexadecimal digits, in lower case."""
    return isinstance(pin, str) and _PIN.fullmatch(pin) is not None


def stratum_suffix(version: int, level: str) -> str:
    """Return the end of the names of a stratum's rounds; it is empty for the first terms."""
    return (f"-v{version}" if version > 1 else "") + (f"-{level}" if level else "")


def round_name(t: int, suffix: str = "", purpose: str = "publication", number: int = 1) -> str:
    """Return the name of a stratum's round, for an ask; with slots it is that of the default.

    >>> round_name(7), round_name(7, "-v2-careful"), round_name(7, "", "dissimilarity", 3)
    ('7-publication', '7-publication-v2-careful', '7-dissimilarity-3')
    """
    return f"{t}-{purpose}" + (f"-{number}" if number > 1 else "") + suffix


def timestamp_in(round_name: str) -> int:
    """Return the timestamp that a round is for, from 1; 0 if it has no name.

    >>> timestamp_in("7-publication-v2-careful"), timestamp_in("publication")
    (7, 0)
    """
    found = _ROUND.fullmatch(round_name)
    return 0 if found is None else int(found[1])


def stratum_in(round_name: str) -> tuple[int, str] | None:
    """Return the version of the terms and the level that a round is for; None if it has no name.

    >>> stratum_in("7-publication"), stratum_in("7-publication-v2-careful")
    ((1, ''), (2, 'careful'))
    """
    found = _ROUND.fullmatch(round_name)
    return None if found is None else (int(found[2] or 1), found[3] or "")


def version_in(round_name: str) -> int:
    """Return the version of the terms that a round is for; 1 if it has no name."""
    return (stratum_in(round_name) or (1, ""))[0]


def level_in(round_name: str) -> str:
    """Return the level that a round is for; empty: the stream's own, or the round has no name."""
    return (stratum_in(round_name) or (1, ""))[1]


def ask_name(round_name: str) -> str:
    """Return the name of a round without its stratum: all rounds of one ask share it.

    >>> ask_name("7-publication-v2-careful")
    '7-publication'
    """
    return round_name.removesuffix(stratum_suffix(version_in(round_name), level_in(round_name)))


@dataclass(frozen=True)
class Level:
    """A level of privacy that a person may choose in place of the stream's own."""

    name: str
    epsilon: Epsilon
    window: int
    oracle: Oracle | Numeric

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "epsilon_nano": self.epsilon.nano,
            "window": self.window,
            "oracle": self.oracle.value,
        }


@dataclass(frozen=True)
class Succession:
    """How terms follow others of the same stream."""

    pin: str
    """The pin of the predecessor."""
    version: int
    """The number of these terms, from 2; it never goes back."""
    from_t: int
    """The first timestamp that they are in force at."""
    until_t: int
    """The last timestamp at which reports under the predecessor are counted."""
    labels: tuple[str, ...] | None
    """What each label of the predecessor is called now, in its order, or None for numbers."""

    @classmethod
    def read(cls, sent: object) -> Succession | None:
        """Parse the form that `to_json` makes; return None if it is malformed."""
        if not isinstance(sent, dict):
            return None
        labels = sent.get("labels")
        named = isinstance(labels, list) and all(isinstance(one, str) for one in labels)
        if (
            sent.keys() - {"labels"} != {"pin", "version", "from_t", "until_t"}
            or not is_pin(sent["pin"])
            or not whole(sent["version"], 2, LATEST_VERSION)
            or not whole(sent["from_t"], 1, 1 << 52)
            or not whole(sent["until_t"], sent["from_t"] - 1, 1 << 52)
            or not (named or "labels" not in sent)
        ):
            return None
        mapped = tuple(labels) if isinstance(labels, list) else None
        return cls(sent["pin"], sent["version"], sent["from_t"], sent["until_t"], mapped)

    def to_json(self) -> dict[str, Any]:
        form: dict[str, Any] = {
            "pin": self.pin,
            "version": self.version,
            "from_t": self.from_t,
            "until_t": self.until_t,
        }
        return form if self.labels is None else form | {"labels": list(self.labels)}
