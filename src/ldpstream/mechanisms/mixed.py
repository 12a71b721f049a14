"""Reports under several versions of a stream's terms, read as one sample of the devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpstream.arrays import Counts, Floats
from ldpstream.mechanisms.messages import Tally
from ldpstream.mechanisms.noise import Noise, NoiseContext, ReportSampler
from ldpstream.oracles.collector_half import Support
from ldpstream.privacy.epsilon import Epsilon

UNKNOWN = 1.0
"""The variance of a label that earlier terms do not have: their devices may hold it unsaid."""


@dataclass(frozen=True)
class TermsPart:
    """Reports under one version of the terms; there is at least one."""

    noise: Noise
    epsilon: Epsilon
    support: Support
    window: int
    """The number of devices that each report stands for."""
    to: tuple[int, ...] | None
    """The bin of now for each of its own, if its labels are older ones."""

    def shown(self, values: Floats, bins: int, new: float = 0.0) -> Floats:
        """Return values of its own bins, summed up in the bins of now; `new` for new ones."""
        if self.to is None:
            return values
        places = np.array(self.to)
        summed = np.where(np.bincount(places, minlength=bins) > 0, 0.0, new)
        np.add.at(summed, places, values)
        return summed

    def known(self, values: Floats) -> Floats:
        """Return values of the bins of now by its own; those that became one share it equally."""
        if self.to is None:
            return values
        places = np.array(self.to)
        shared: Floats = values[places] / np.bincount(places)[places]
        return shared


@dataclass(frozen=True)
class MixedNoise:
    """The noise of devices of which some have earlier terms, as if there were one kind of report.

    Each device counts the same. The support that it is given has the number of reports and no
    counts: those are in the parts, each with labels of its own.
    """

    parts: tuple[TermsPart, ...]
    now: Noise
    """The noise of the terms in force."""
    population: int = 0

    @property
    def oracle(self) -> Any:
        return self.now.oracle

    @property
    def labels(self) -> int:
        return self.now.labels

    @property
    def devices(self) -> int:
        """The number of devices that all reports stand for."""
        return sum(part.support.reports * part.window for part in self.parts)

    def among(self, population: int) -> MixedNoise:
        return MixedNoise(self.parts, self.now, population)

    def tally(self, epsilon: Epsilon, support: Support) -> Tally:
        estimate, variance = np.zeros(self.labels), np.zeros(self.labels)
        for part, weight, noise in self._weighed():
            tally = noise.tally(part.epsilon, part.support)
            estimate += weight * part.shown(tally.estimate, self.labels)
            variance += weight**2 * part.shown(tally.variance, self.labels, UNKNOWN)
        lasting = self._unsaid()
        return Tally(estimate, variance + lasting, support.reports, lasting=lasting)

    def bin_variance(self, epsilon: Epsilon, tally: Tally, known: Floats) -> Floats:
        variance = np.zeros(self.labels)
        for part, weight, noise in self._weighed():
            own = noise.tally(part.epsilon, part.support)
            spread = noise.bin_variance(part.epsilon, own, part.known(known))
            variance += weight**2 * part.shown(spread, self.labels, UNKNOWN)
        return variance + self._unsaid()

    def _unsaid(self) -> Floats:
        """Return the variance of what devices hold that their terms have no label for.

        It is there beside the noise: the same at every timestamp, and of the same sign under all
        earlier terms, so that shares add up first.
        """
        share = np.zeros(self.labels)
        for part, weight, _ in self._weighed():
            share += weight * part.shown(np.zeros(part.noise.labels), self.labels, 1.0)
        return UNKNOWN * share**2

    def _weighed(self) -> list[tuple[TermsPart, float, Noise]]:
        """Return each part, its share of the devices, and its noise among as many."""
        shares = [part.support.reports * part.window / self.devices for part in self.parts]
        return [
            (
                part,
                share,
                part.noise.among(max(round(share * self.population), part.support.reports)),
            )
            for part, share in zip(self.parts, shares, strict=True)
        ]

    def expected(self, epsilon: Epsilon, reports: int, evidence: NoiseContext) -> float:
        return self.now.expected(epsilon, reports, evidence)

    def inputs(self, counts: Counts) -> Counts:
        return self.now.inputs(counts)

    def lab(self, epsilon: Epsilon) -> ReportSampler:
        return self.now.lab(epsilon)
