"""What the counted columns of a vocabulary's groups say of texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Counts, Flags, Floats
from ldpstream.oracles.collector_half import Support, sampling
from ldpstream.oracles.hadamard.collector import Collector
from ldpstream.oracles.hadamard.device import Device
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.vocabulary.device import HASHES, Vocabulary
from ldpstream.vocabulary.kernels import Texts, opposing, transformed

DISAGREEMENT = 3.0
"""Standard errors between the hash functions of one length from which a text is taken for another
that shares its bucket under one of them; chance does so to 1 of 370 true texts. The two must also
be further apart than the text's own share: of one that shares a bucket they are by twice that, and
few fakes in one group could else hide what many hold."""


@dataclass(frozen=True)
class ColumnCounts:
    """Counts of the columns that were reported, sparsely; those of one group add up.

    >>> round_1, round_2 = ColumnCounts.of(np.array([5, 5, 9])), ColumnCounts.of(np.array([9]))
    >>> (round_1 + round_2).places.tolist(), (round_1 + round_2).counts.tolist()
    ([5, 9], [2, 2])
    """

    places: NDArray[np.uint32]
    """The columns that were reported at all, ascending."""
    counts: Counts

    @classmethod
    def of(cls, reports: NDArray[np.uint32]) -> ColumnCounts:
        places, counts = np.unique(reports, return_counts=True)
        return cls(places.astype(np.uint32), counts)

    @classmethod
    def none(cls) -> ColumnCounts:
        return cls(np.zeros(0, np.uint32), np.zeros(0, np.int64))

    @classmethod
    def summed(cls, parts: Iterable[ColumnCounts]) -> ColumnCounts:
        """Return the sum of many, in one pass."""
        kept = list(parts) or [cls.none()]
        places, inverse = np.unique(
            np.concatenate([part.places for part in kept]), return_inverse=True
        )
        counts = np.bincount(
            inverse, np.concatenate([part.counts for part in kept]), minlength=len(places)
        )
        return cls(places, counts.astype(np.int64))

    def __add__(self, other: ColumnCounts) -> ColumnCounts:
        return ColumnCounts.summed((self, other))

    @property
    def reports(self) -> int:
        return int(self.counts.sum())

    def support(self, rows: NDArray[np.uint32]) -> Support:
        """Return how many reports support each of a few rows, without a transform."""
        return Support(self.reports - opposing(rows, self.places, self.counts), self.reports)

    def dense(self, columns: int) -> Counts:
        counted = np.zeros(columns, np.int64)
        counted[self.places] = self.counts
        return counted


@dataclass(frozen=True)
class ShareEstimates:
    """Unbiased shares of texts, with the standard errors of texts that nobody holds."""

    shares: Floats
    errors: Floats
    agree: Flags
    """Whether the hash functions agree, as they do unless a heavier text shares a bucket."""

    @property
    def scores(self) -> Floats:
        """The shares in standard errors; none for what is explained by another text."""
        scores: Floats = np.where(self.agree, self.shares / self.errors, -np.inf)
        return scores


class TextEvidence:
    """The reports of all groups over some rounds, ready to be asked about any text."""

    def __init__(
        self, vocabulary: Vocabulary, epsilon: Epsilon, groups: Sequence[ColumnCounts]
    ) -> None:
        self.vocabulary = vocabulary
        self._groups = groups
        self._collector = Collector(Device(vocabulary.buckets, epsilon))
        self._rows: dict[int, NDArray[np.int32]] = {}

    def prefix_figures(self, prefixes: Texts, length: int) -> ShareEstimates:
        """Return the shares of texts whose first `length` bytes are these."""
        level = self.vocabulary.prefixes.index(length)
        return self._figures([self._supports(level, half, prefixes) for half in range(HASHES)])

    def figures(self, texts: Texts) -> ShareEstimates:
        """Return the shares of whole texts.

        A group that reports prefixes longer than a text reports all of it, and counts too.
        """
        return self._figures([self._whole_supports(half, texts) for half in range(HASHES)])

    def measured(self, texts: Texts, windows: float, population: int) -> tuple[Floats, Floats]:
        """Return the shares of whole texts and their standard errors, at what they are.

        The reports are those of so many windows, in each of which a device has one.
        """
        halves = [self._whole_supports(half, texts) for half in range(HASHES)]
        counts, reports = (np.sum(part, axis=0) for part in zip(*halves, strict=True))
        shares, _ = self._shares(counts, reports)
        possible, some = np.clip(shares, 0.0, 1.0), np.maximum(reports, 1)
        noise = self._collector.variance(1, possible) / some
        sampled = [sampling(max(round(one / windows), 1), population) for one in some.tolist()]
        variance = noise + np.array(sampled) * possible * (1 - possible)
        return shares, np.where(reports, np.sqrt(variance), np.inf)

    def support(self, texts: Sequence[bytes]) -> Support:
        """Return how many reports of the groups of whole texts support each of a few texts."""
        total = Support.none(len(texts))
        for number, buckets in self._whole_buckets(texts):
            total += self._groups[number].support(buckets + np.uint32(1))
        return total

    def buckets(self, texts: Sequence[bytes]) -> list[tuple[tuple[int, int], ...]]:
        """Return the buckets of whole texts, each as a group's number and a place in it."""
        groups = self._whole_buckets(texts)
        parts = ([(number, bucket) for bucket in buckets.tolist()] for number, buckets in groups)
        return [*zip(*parts, strict=True)]

    def _whole_buckets(self, texts: Sequence[bytes]) -> list[tuple[int, NDArray[np.uint32]]]:
        """Return the numbers of the groups of whole texts, each with the buckets of these."""
        looked_up, size = Texts.of(texts), self.vocabulary.buckets
        groups = self.vocabulary.groups[-HASHES:]
        return [(group.number, looked_up.buckets(group.seed, size)) for group in groups]

    def _whole_supports(self, half: int, texts: Texts) -> tuple[Counts, Counts]:
        lengths = np.diff(texts.ends, prepend=0)
        counts, reports = self._supports(len(self.vocabulary.prefixes), half, texts)
        for level, length in enumerate(self.vocabulary.prefixes):
            more, of = self._supports(level, half, texts)
            short = lengths < length
            counts, reports = counts + short * more, reports + short * of
        return counts, reports

    def _supports(self, level: int, half: int, texts: Texts) -> tuple[Counts, Counts]:
        """Return, by text, how many reports of one group support it, and of how many."""
        group = self.vocabulary.groups[HASHES * level + half]
        places = texts.buckets(group.seed, self.vocabulary.buckets, group.length) + np.uint32(1)
        if self._are_few(texts, group.number):
            support = self._groups[group.number].support(places)
            return support.counts, np.full(len(texts), support.reports, np.int64)
        rows = self._transformed(group.number)
        reports = np.full(len(texts), rows[0], np.int64)
        return (reports + rows[places]) // 2, reports

    def _are_few(self, texts: Texts, number: int) -> bool:
        """Return whether texts are looked up faster, and in less room, without a transform."""
        columns = self._collector.device.columns
        steps = len(texts) * len(self._groups[number].places)
        return number not in self._rows and steps < columns * self.vocabulary.bits

    def _transformed(self, number: int) -> NDArray[np.int32]:
        """Return the transform of one group, made when it is first asked for."""
        if number not in self._rows:
            dense = self._groups[number].dense(self._collector.device.columns)
            self._rows[number] = transformed(dense)
        return self._rows[number]

    def _figures(self, halves: Sequence[tuple[Counts, Counts]]) -> ShareEstimates:
        (one, variance), (other, other_variance) = (self._shares(*half) for half in halves)
        noise = DISAGREEMENT * np.sqrt(variance + other_variance)
        counts, reports = (np.sum(part, axis=0) for part in zip(*halves, strict=True))
        shares, variance = self._shares(counts, reports)
        agree = np.abs(one - other) <= np.maximum(noise, shares)
        return ShareEstimates(shares, np.sqrt(variance), agree)

    def _shares(self, counts: Counts, reports: Counts) -> tuple[Floats, Floats]:
        """Return shares less what other texts put into a bucket by chance, and their variances."""
        some = np.maximum(reports, 1)
        by_chance = 1 / self.vocabulary.buckets
        found = (self._collector.unbiased(counts / some) - by_chance) / (1 - by_chance)
        variance = np.where(reports, self._collector.paper_variance(1) / some, np.inf)
        return np.where(reports, found, 0.0), variance
