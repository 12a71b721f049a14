"""The keys of a stream of texts, `vocabulary = "open"` in place of labels."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import NoReturn

from ldpstream.collector.config.table import ConfigTable, written
from ldpstream.mechanisms.following import MOST_LISTED
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.terms import SALT, SelectionMethod
from ldpstream.vocabulary import Vocabulary
from ldpstream.vocabulary.device import LEAST_BITS, MOST_BITS
from ldpstream.vocabulary.planning import PREFIXES, planned_bits

OPEN = "open"
MECHANISM = "lpf"
"""The only mechanism that follows texts."""
TOP = 100
"""The usual number of texts that a release has at most."""
UNKNOWN_FLEET_BITS = 20
"""The bits of a stream whose population is counted: they are pinned before there is a fleet."""
MOST_CANDIDATES = 1_000_000
"""Candidates are looked up together, in memory."""

_OWN_KEYS = {"bits", "prefixes", "salt", "candidates", "candidates_file"}
_NOT_FOR_TEXTS = {
    "labels": "labels",
    "range": "a range",
    "query": "a query",
    "bins": "bins",
    "other": "other",
    "level": "levels",
    "successor": "a successor",
    "thresholds": "thresholds: use an alert with the text as its label",
    "attributes": "attributes",
}


@dataclass(frozen=True)
class OpenVocabulary:
    """The vocabulary keys of a file; None stands for the stored value, or the default."""

    bits: int | None
    prefixes: tuple[int, ...] | None
    salt: int | None

    def settled(self, stored: Vocabulary) -> Vocabulary:
        """Return the vocabulary that the file describes, completed from the stored one."""
        return Vocabulary(
            stored.salt if self.salt is None else self.salt,
            self.bits or stored.bits,
            stored.prefixes if self.prefixes is None else self.prefixes,
        )

    def begun(self, planned: Vocabulary) -> Vocabulary:
        """Return the vocabulary of a new stream; a salt is generated unless it is given."""
        salt = secrets.randbits(64) if self.salt is None else self.salt
        return replace(planned, salt=salt)


def read_vocabulary(table: ConfigTable) -> OpenVocabulary | None:
    """Read the keys that the terms pin, or return None if it is not a stream of texts."""
    if "vocabulary" not in table:
        return None
    table.choice("vocabulary", (OPEN,), OPEN)
    table.asked |= _OWN_KEYS
    for key, what in _NOT_FOR_TEXTS.items():
        if key in table:
            table.refuse(key, f"a stream of texts cannot have {what}", "leave it out")
    _only(table, "mechanism", MECHANISM)
    _only(table, "selection", SelectionMethod.SLOTS)
    _only(table, "oracle", Oracle.HADAMARD)
    return OpenVocabulary(_bits(table), _prefixes(table), _salt(table))


def planned_vocabulary(
    table: ConfigTable, given: OpenVocabulary, population: int | None, epsilon: Epsilon
) -> Vocabulary:
    """Return the vocabulary of a stream that is not begun; its salt is 0 until it is."""
    usual = UNKNOWN_FLEET_BITS if population is None else planned_bits(population, epsilon)
    prefixes = PREFIXES if given.prefixes is None else given.prefixes
    vocabulary: Vocabulary = table.attempt(
        "prefixes", lambda: Vocabulary(given.salt or 0, given.bits or usual, prefixes)
    )
    return vocabulary


def read_candidates(table: ConfigTable) -> tuple[str, ...]:
    """Read `candidates` and the lines of `candidates_file`, without repetitions."""
    found = table.strings("candidates") if "candidates" in table else []
    if "candidates_file" in table:
        found = [*found, *_lines(table)]
    if len(found) > MOST_CANDIDATES:
        what, fix = f"there are {len(found):,} candidates", f"most: {MOST_CANDIDATES:,}"
        _refuse_candidates(table, what, fix)
    return tuple(dict.fromkeys(text for text in found if text))


def read_top(table: ConfigTable) -> int:
    """Read `top`: how many texts a release has at most."""
    top = table.whole("top", TOP, least=1)
    if top > MOST_LISTED:
        table.refuse("top", f"top is {top}", f"give at most {MOST_LISTED}")
    return top


def _only(table: ConfigTable, key: str, expected: str) -> None:
    given = table.text(key, expected)
    if given not in (expected, "auto"):
        what = f"a stream of texts has {key} {expected}, not {given}"
        table.refuse(key, what, "leave it out")


def _bits(table: ConfigTable) -> int | None:
    if "bits" not in table:
        return None
    bits = table.whole("bits", least=LEAST_BITS)
    if bits > MOST_BITS:
        table.refuse("bits", f"bits is {bits}", f"give {LEAST_BITS} to {MOST_BITS}")
    return bits


def _prefixes(table: ConfigTable) -> tuple[int, ...] | None:
    if "prefixes" not in table:
        return None
    given = table.get("prefixes")
    if not isinstance(given, list) or any(type(one) is not int for one in given):
        table.refuse("prefixes", f"prefixes is {written(given)}", "give a list of lengths in bytes")
    return tuple(given)


def _salt(table: ConfigTable) -> int | None:
    if "salt" not in table:
        return None
    salt = table.text("salt")
    if SALT.fullmatch(salt) is None:
        table.refuse("salt", f"salt is {salt!r}", "give 16 digits of 0-9 and a-f, or leave it out")
    return int(salt, 16)


def _lines(table: ConfigTable) -> list[str]:
    file = table.file.parent / table.text("candidates_file")
    try:
        return file.read_text("utf-8-sig").splitlines()
    except OSError as error:
        _refuse_candidates(table, f"{file}: {error.strerror}", "give a file that can be read")
    except UnicodeDecodeError:
        _refuse_candidates(table, f"{file} is not UTF-8 text", "give one text in each line")


def _refuse_candidates(table: ConfigTable, what: str, fix: str) -> NoReturn:
    key = "candidates_file" if "candidates_file" in table else "candidates"
    table.refuse(key, what, fix)
