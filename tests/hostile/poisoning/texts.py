"""Fake devices of a stream of texts, which know their group, and how far they move a figure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ldpstream.lab.vocabulary import TextFleet
from ldpstream.mechanisms.following import KEPT_WINDOWS, Following, evidence_of
from ldpstream.oracles.gain import Gain
from ldpstream.oracles.hadamard.device import Device
from ldpstream.oracles.kernels.labels import drawn_columns
from ldpstream.oracles.lab_half import ALWAYS, draw_seed, threshold
from ldpstream.oracles.registry import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.streams.words import words
from ldpstream.vocabulary.collector import without_flood
from ldpstream.vocabulary.device import Vocabulary
from ldpstream.vocabulary.evidence import ColumnCounts
from ldpstream.vocabulary.kernels import Texts

TARGET = b"zzzzz"
"""A text that nobody holds, as short as can be found with the usual prefixes."""


class TextAttack(StrEnum):
    """The reports that a fake device sends."""

    NONE = "none"
    LIE = "lie"
    """The target as its value, honestly randomised."""
    SUPPORT = "support"
    """Any column that supports the bucket of the target in its group."""
    FLOOD = "flood"
    """Column 0, which supports all buckets of all groups."""


class Fakes:
    """Fake devices beside a fleet, in the groups that their keys give them."""

    def __init__(
        self,
        attack: TextAttack,
        number: int,
        vocabulary: Vocabulary,
        epsilon: Epsilon,
        window: int,
        rng: np.random.Generator,
    ) -> None:
        self._attack, self._vocabulary = attack, vocabulary
        self._each = number / (window * len(vocabulary.groups))
        self._device, self._rng = Device(vocabulary.buckets, epsilon), rng

    def report(self, honest: list[ColumnCounts]) -> list[ColumnCounts]:
        """Return the columns of a timestamp, with theirs, as a collector reads them."""
        return [
            without_flood(
                one + self._of(number, int(self._rng.poisson(self._each))), self._device.columns
            )
            for number, one in enumerate(honest)
        ]

    def _of(self, group: int, fakes: int) -> ColumnCounts:
        match self._attack:
            case TextAttack.NONE:
                return ColumnCounts.none()
            case TextAttack.FLOOD:
                return ColumnCounts.of(np.zeros(fakes, np.uint32))
        one = self._vocabulary.groups[group]
        bucket = Texts.of([TARGET]).buckets(one.seed, self._vocabulary.buckets, one.length)
        lies = self._attack is TextAttack.LIE
        keeps = threshold(float(self._device.p)) if lies else ALWAYS
        seed, values = draw_seed(self._rng), np.repeat(bucket, fakes)
        return ColumnCounts.of(drawn_columns(values, self._device.columns, keeps, seed))


@dataclass(frozen=True)
class Poisoned:
    """The outcome of three windows with fakes."""

    attack: str
    fakes: float
    """Their share of all devices."""
    expected: float
    """How far they move the figure of the target, in theory."""
    figure: float
    """That of the target, which nobody holds."""
    listed: bool
    """Whether it was listed at the end."""
    false: int
    """Other texts that were listed at the end and that nobody holds."""


def poison(
    attack: TextAttack, share: float, *, users: int, epsilon: str, window: int, seed: int
) -> Poisoned:
    """Run a fleet of words with fakes, from an empty list."""
    rng, size = np.random.default_rng(seed), Epsilon.of(epsilon)
    vocabulary = Vocabulary(int(rng.integers(1 << 62)), 18, (2, 4))
    stream = words(users=users, texts=1000, longest=5, seed=seed)
    texts = [text.encode() for text in stream.domain.labels]
    fleet = TextFleet(Texts.of(texts), stream.holders, vocabulary, size, window, rng)
    number = round(share / (1 - share) * users)
    fakes = Fakes(attack, number, vocabulary, size, window, rng)
    following = Following(vocabulary, size, window, users + number)
    rounds: list[list[ColumnCounts]] = []
    for t in range(1, KEPT_WINDOWS * window + 1):
        rounds.append(fakes.report(fleet.report(t)))
        listed = following.step(t, rounds[-1])
    evidence = evidence_of(vocabulary, size, rounds)
    shares, _ = evidence.measured(Texts.of([TARGET]), KEPT_WINDOWS, users)
    gain = {
        TextAttack.LIE: 1.0,
        TextAttack.SUPPORT: Gain.of(Oracle.HADAMARD, 65535, size).raising,
    }.get(attack, 0.0)
    false = set(listed.texts) - set(texts) - {TARGET}
    return Poisoned(
        attack.value,
        share,
        share * gain,
        float(shares[0]),
        TARGET in listed.texts,
        len(false),
    )
