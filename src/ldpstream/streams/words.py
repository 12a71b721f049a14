"""A stream of texts of which a few are held by many: for vocabularies that nobody has listed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpstream.domain import Domain
from ldpstream.errors import Mistake, Problem
from ldpstream.streams.stream import Snapshot, ValuesSnapshot, brief, fingerprint_of
from ldpstream.streams.synthetic import TIMESTAMPS, USERS, parameters_of

NAME = "words"
LEAST_LETTERS = 3


class Words(Domain):
    """Texts, of which there may be more than labels of a histogram."""

    most_labels: ClassVar[int] = 1 << 20


@dataclass(frozen=True, repr=False)
class WordStream:
    """A stream in which each user holds the same text at all timestamps.

    >>> words(users=1000, timestamps=5, texts=20)
    WordStream('words': 1,000 users, 5 timestamps, 20 labels)
    """

    domain: Words
    holders: NDArray[np.uint32]
    """Which text each user holds."""
    timestamps: int
    name: str = NAME

    def __repr__(self) -> str:
        return brief(self)

    @property
    def users(self) -> int:
        return len(self.holders)

    @cached_property
    def fingerprint(self) -> str:
        held = np.ascontiguousarray(self.holders, "<u4")
        return fingerprint_of("words", self.domain, self.timestamps, held.tobytes())

    def snapshots(self, rng: np.random.Generator) -> Iterator[Snapshot]:
        for _ in range(self.timestamps):
            yield ValuesSnapshot(self.holders, len(self.domain))


def words(
    users: int = USERS,
    timestamps: int = TIMESTAMPS,
    texts: int = 10_000,
    exponent: float = 1.0,
    longest: int = 8,
    seed: int = 0,
) -> WordStream:
    """Random words of 3 to `longest` letters; word i is held in proportion to i^-exponent (Zipf).

    >>> words(users=10, timestamps=1, texts=4).domain.labels
    ('ibbaevqx', 'npzsqo', 'hvrakw', 'tswe')
    """
    rng = np.random.default_rng(seed)
    found = random_texts(texts, longest, rng)
    holders = zipf_holders(texts, users, exponent, rng)
    return WordStream(Words(tuple(text.decode() for text in found)), holders, timestamps)


def named_words(
    text: str, users: int | None = None, timestamps: int | None = None, seed: int = 0
) -> WordStream:
    """Make a stream of words from its name and parameters, as on the command line.

    >>> named_words("words:texts=50,exponent=1.5", users=1000).users
    1000
    """
    return words(**parameters_of(words, text, users, timestamps, seed))


def is_words(text: str) -> bool:
    """Return whether a stream is called so, with or without parameters."""
    return text.partition(":")[0] == NAME


def zipf_holders(
    texts: int, users: int, exponent: float, rng: np.random.Generator
) -> NDArray[np.uint32]:
    """Return which text each user holds: text i with probability in proportion to i^-exponent."""
    weights = np.arange(1, texts + 1) ** -exponent
    return rng.choice(texts, size=users, p=weights / weights.sum()).astype(np.uint32)


def random_texts(number: int, longest: int, rng: np.random.Generator) -> list[bytes]:
    """Return distinct words of 3 to `longest` random letters."""
    if longest < LEAST_LETTERS or number > 26**longest // 2:
        raise Mistake(
            Problem.STREAM_PARAMETER,
            stream=NAME,
            name="longest",
            given=longest,
            expected=f"{LEAST_LETTERS} or more, so many that there are enough words",
        )
    found: dict[bytes, None] = {}
    while len(found) < number:
        lengths = rng.integers(LEAST_LETTERS, longest + 1, size=number)
        letters = rng.integers(ord("a"), ord("z") + 1, size=(number, longest)).astype(np.uint8)
        found |= dict.fromkeys(
            row[:length].tobytes() for row, length in zip(letters, lengths, strict=True)
        )
    return list(found)[:number]


def shares_of(texts: Sequence[bytes], holders: NDArray[Any]) -> dict[bytes, float]:
    """Return the share of the fleet that holds each text."""
    counts = np.bincount(holders, minlength=len(texts)) / len(holders)
    return dict(zip(texts, counts.tolist(), strict=True))
