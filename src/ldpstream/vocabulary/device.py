"""How a device turns a text into the bucket that it reports."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

from ldpstream.errors import Mistake, Problem

LONGEST_TEXT = 256
"""The bytes of a text that count; what is longer is cut."""
LONGEST_COMPOSED = 400
"""The code points of a text that are composed, which takes time by the square of marks in a row: a
text must not make its device late, or silent. 384 make 256 bytes, since three make at least two.
"""
LEAST_BITS, MOST_BITS = 16, 24
MOST_PREFIXES = 7
LONGEST_PREFIX = 16
HASHES = 2
"""Hash functions for each length: two texts that share a bucket under one differ by the other."""

_WORD = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Group:
    """A part of the fleet, whose devices all report a prefix of the same length, hashed alike."""

    number: int
    length: int | None
    """The bytes of the prefix, or None for the whole text."""
    seed: int
    """Of the hash function, 64 bits."""


@dataclass(frozen=True)
class Vocabulary:
    r"""The parameters of the reports of texts, all of which are pinned by the terms.

    A device belongs to one group for good, which a keyed hash of its own decides: there are
    `HASHES` groups for each prefix length and as many for whole texts. Every text has a bucket in
    every group, so the map from values to inputs of the randomiser is fixed and total.

    >>> words = Vocabulary(salt=7, bits=16, prefixes=(2, 4))
    >>> len(words.groups), words.buckets
    (6, 65535)
    >>> words.bucket("Zürich", words.groups[0]) == words.bucket("Zug", words.groups[0])
    False
    >>> words.bucket("Zürich", words.groups[-1]) == words.bucket("Zu\u0308rich", words.groups[-1])
    True
    """

    salt: int
    bits: int
    prefixes: tuple[int, ...] = ()
    """Lengths in bytes, ascending, of the groups that serve discovery; empty: nothing is found."""

    def __post_init__(self) -> None:
        if not LEAST_BITS <= self.bits <= MOST_BITS:
            _refuse("bits", self.bits, f"{LEAST_BITS} to {MOST_BITS}")
        if not 0 <= self.salt <= _WORD:
            _refuse("salt", self.salt, "64 bits")
        ascending = all(a < b for a, b in zip((0, *self.prefixes), self.prefixes, strict=False))
        if not ascending or len(self.prefixes) > MOST_PREFIXES:
            _refuse("prefixes", list(self.prefixes), f"at most {MOST_PREFIXES} ascending lengths")
        if self.prefixes and self.prefixes[-1] > LONGEST_PREFIX:
            _refuse("prefixes", list(self.prefixes), f"lengths of at most {LONGEST_PREFIX} bytes")

    def __len__(self) -> int:
        """Return the number of inputs of the randomiser, as for a domain of labels."""
        return self.buckets

    def to_json(self) -> dict[str, Any]:
        """Return what the terms pin; the salt is a text, since JavaScript has no such integers.

        >>> Vocabulary(salt=7, bits=16, prefixes=(2, 4)).to_json()
        {'salt': '0000000000000007', 'bits': 16, 'prefixes': [2, 4]}
        """
        return {"salt": f"{self.salt:016x}", "bits": self.bits, "prefixes": list(self.prefixes)}

    @property
    def buckets(self) -> int:
        """One less than a power of two: row 0 of the matrix is no bucket's."""
        return (1 << self.bits) - 1

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """All groups by number; those of whole texts come last."""
        lengths = [length for length in (*self.prefixes, None) for _ in range(HASHES)]
        return tuple(
            Group(number, length, _mix(self.salt + (number + 1) * _GAMMA & _WORD))
            for number, length in enumerate(lengths)
        )

    def bucket(self, text: object, group: Group) -> int:
        """Return the bucket of a text in a group."""
        if not isinstance(text, str):
            raise Mistake(
                Problem.OPTION, option="a value", given=text, expected="a text, or nothing"
            )
        return bucket_of(encoded(text)[: group.length], group.seed, self.buckets)


def encoded(text: str) -> bytes:
    """Return the bytes that a text is hashed by: UTF-8 of its composed form (NFC), cut.

    It is cut before it is composed, too. A lone surrogate, which UTF-8 cannot encode, becomes a
    question mark.
    """
    composed = unicodedata.normalize("NFC", text[:LONGEST_COMPOSED])
    return composed.encode("utf-8", "replace")[:LONGEST_TEXT]


def bucket_of(data: bytes, seed: int, buckets: int) -> int:
    """Return the hash of some bytes: SplitMix64 absorbs them in little-endian words of eight.

    The length goes in first, so that padding cannot make two texts equal. The hash need not resist
    an adversary: with a public salt and some millions of buckets, none could. Every text takes the
    same steps: zeros are absorbed up to the longest one, and the state before them counts.
    """
    state = _mix(seed ^ len(data))
    states, padded = [state], data.ljust(LONGEST_TEXT, b"\0")
    for start in range(0, LONGEST_TEXT, 8):
        word = int.from_bytes(padded[start : start + 8], "little")
        state = _mix((state ^ word) + _GAMMA & _WORD)
        states.append(state)
    return (states[-(-len(data) // 8)] >> 32) * buckets >> 32


def _mix(state: int) -> int:
    """Apply the output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    state = (state ^ state >> 27) * 0x94D049BB133111EB & _WORD
    return state ^ state >> 31


def _refuse(name: str, given: object, expected: str) -> NoReturn:
    raise Mistake(
        Problem.OPTION, option=f"{name} of the vocabulary", given=given, expected=expected
    )
