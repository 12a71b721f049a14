"""Strata: parts of a fleet that report under promises of their own, combined into one tally.

A stratum is a level of privacy, or the devices that still have earlier terms: its devices share an
epsilon, a window, an oracle and a set of labels, and report in slots to rounds of their own. A
mechanism does not notice. It asks once, and is sent one `Tally` of the whole fleet.

With N_k devices in stratum k, N in all and W_k = N_k / N, the figure of the fleet is sum_k W_k f_k:
each device counts the same, so that it is unbiased even if careful people hold other values. It is
estimated by sum_k a_k (f_k - d_k). Here d_k is how far the stratum usually is off the fleet
(`refine/offsets.py`), sum_k W_k d_k = 0, and the weights a_k go from W_k, while little is known of
the offsets, towards inverse variances, if these last. docs/levels.md derives the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.mechanisms.messages import Tally
from ldpstream.mechanisms.noise import Noise
from ldpstream.oracles.collector_half import Support, sampling
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.slots import turn_share
from ldpstream.refine.offsets import UNKNOWN, Drift, Offset, best_weights
from ldpstream.refine.packing import pack, unpack

OFFSETS_OVER = 4.0
"""The longest windows that offsets are averaged over."""
DRIFT_OVER = 0.5
"""The longest windows that offsets are averaged over to see whether they drift."""
GONE = 1e-3
"""Devices that a stratum must be thought to have; one with fewer is left out."""
LEAST_CONTRAST = 1e-9
"""The difference of weights below which nothing is compared: there is one stratum only."""
SURE = 20.0
"""Reports that must be expected for none at all to be an outage, not chance (e^-20 = 2e-9)."""


@dataclass(frozen=True)
class Stratum:
    """A part of the fleet whose devices all report once in `window` with all of `epsilon`."""

    name: str
    epsilon: Epsilon
    window: int
    noise: Noise
    """How its reports are read. Its population does not matter: sizes are learnt."""
    to: tuple[int, ...] | None = None
    """The fleet's bin for each bin of this stratum, if its labels are older ones. Several may go to
    one bin; of bins that none goes to, its devices hold nothing."""

    def shown(self, values: Floats, bins: int) -> Floats:
        """Return values of this stratum's bins, summed up in the bins of the fleet."""
        if self.to is None:
            return values
        summed = np.zeros(bins)
        np.add.at(summed, list(self.to), values)
        return summed


@dataclass(frozen=True)
class StratumMemory:
    """What is remembered of one stratum: sums over its past, which fade within a window.

    At each timestamp that passes the weight of all earlier ones shrinks by 1 - 1/w.
    """

    t: int
    """The last timestamp that was taken in."""
    reported: int
    """The last timestamp with reports."""
    reports: float
    """The sum of n, the reports."""
    turns: float
    """The sum of the shares of its devices whose turn it was: close to 1 after a few windows."""
    values: Floats
    """The sum of n times the estimate, bin by bin."""

    @property
    def size(self) -> float:
        """The number of devices that the stratum stands for: about n w."""
        return self.reports / self.turns

    @property
    def size_variance(self) -> float:
        """An upper bound: counts scatter no more than a Poisson variable does."""
        return self.reports / self.turns**2

    def to_json(self) -> dict[str, Any]:
        names = ("t", "reported", "reports", "turns")
        return {name: getattr(self, name) for name in names} | {"values": pack(self.values)}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> StratumMemory:
        return cls(**saved | {"values": unpack(saved["values"])})


@dataclass(frozen=True)
class StrataMemory:
    """What is remembered of all strata, by name. It is a value: to replay t, combine again."""

    heard: Mapping[str, StratumMemory] = field(default_factory=dict)
    offsets: Mapping[str, Offset] = field(default_factory=dict)
    drift: Drift | None = None
    t: int = 0
    """The last timestamp that had reports."""

    def relabelled(self) -> StrataMemory:
        """Return the memory for other labels of the fleet: sizes are kept, offsets are not."""
        return StrataMemory(self.heard)

    def to_json(self) -> dict[str, Any]:
        """Return the memory as JSON, which restores exactly."""
        return {
            "heard": {name: heard.to_json() for name, heard in self.heard.items()},
            "offsets": {name: offset.to_json() for name, offset in self.offsets.items()},
            "drift": self.drift and self.drift.to_json(),
            "t": self.t,
        }

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> StrataMemory:
        return cls(
            {name: StratumMemory.from_json(one) for name, one in saved["heard"].items()},
            {name: Offset.from_json(one) for name, one in saved["offsets"].items()},
            saved["drift"] and Drift.from_json(saved["drift"]),
            saved["t"],
        )


def combine(
    t: int,
    strata: Sequence[Stratum],
    supports: Mapping[str, Support],
    memory: StrataMemory,
    bins: int,
) -> tuple[Tally, StrataMemory]:
    """Return the tally of the fleet at t, in `bins` bins, and what to remember for the next one.

    `supports` has the counted reports of each stratum by name; one that is missing counts as empty.
    A stratum that memory has and `strata` has not is forgotten. If nobody reported at all, the
    tally is empty.

    >>> from ldpstream.mechanisms.noise import NoiseModel, VarianceRule
    >>> from ldpstream.oracles import Oracle
    >>> grr = NoiseModel(Oracle.GRR, 2, 1, VarianceRule.CORRECTED)
    >>> strata = [
    ...     Stratum("careful", Epsilon.of(0.5), 40, grr), Stratum("usual", Epsilon.of(2), 20, grr)
    ... ]
    >>> heard = {
    ...     "careful": Support(np.array([50, 50]), 100), "usual": Support(np.array([88, 12]), 100)
    ... }
    >>> tally, memory = combine(1, strata, heard, StrataMemory(), bins=2)
    >>> [round(one.size) for one in memory.heard.values()]
    [4000, 2000]
    >>> tally.estimate.round(2).tolist(), tally.reports
    ([0.67, 0.33], 200)
    """
    if memory.drift is not None and len(memory.drift.evidence) != bins:
        memory = memory.relabelled()
    parts = [_taken_in(t, one, supports.get(one.name), memory, bins) for one in strata]
    heard = {part.stratum.name: part.heard for part in parts}
    known = [part for part in parts if part.heard.size > GONE]
    if not any(part.tally for part in known):
        return Tally.empty(bins), replace(memory, heard=heard)
    return _Combination(t, known, memory, bins).result(heard)


def return_period(windows: Sequence[int]) -> int:
    """Return the timestamps after which the same devices of all strata report together again.

    >>> return_period([40, 20, 20])
    40
    """
    return math.lcm(*windows)


@dataclass(frozen=True)
class _Part:
    """One stratum at t, in the bins of the fleet."""

    stratum: Stratum
    heard: StratumMemory
    tally: Tally
    frequencies: Floats
    """Those of about the last window."""
    drawn: Floats
    """The part of the tally's variance that is due to who was asked."""
    offset: Offset


def _taken_in(
    t: int, stratum: Stratum, support: Support | None, memory: StrataMemory, bins: int
) -> _Part:
    """Return the stratum with the reports of t counted in.

    Its variance is that at the frequencies known from before: its own estimate would make a bin
    that came out low by chance look more certain than it is. Bins that become one have variances
    that add up: neither an oracle's noise nor sampling correlates their errors positively.
    """
    zeros = np.zeros(stratum.noise.labels)
    before = memory.heard.get(stratum.name, StratumMemory(t - 1, t - 1, 0.0, 0.0, zeros))
    offset = memory.offsets.get(stratum.name, Offset.unknown(bins))
    if support is None or not support.reports:
        heard = _after_silence(t, stratum, before)
        tally, drawn = Tally.empty(bins), np.zeros(bins)
    else:
        heard, own, drawn = _after_reports(t, stratum, before, support)
        estimate, variance, lasting = (
            stratum.shown(one, bins) for one in (own.estimate, own.variance, zeros + own.lasting)
        )
        tally = Tally(estimate, variance, own.reports, lasting=lasting)
        drawn = stratum.shown(drawn, bins)
    frequencies = stratum.shown(heard.values, bins) / max(heard.reports, 1e-300)
    return _Part(stratum, heard, tally, np.clip(frequencies, 0.0, 1.0), drawn, offset)


def _after_reports(
    t: int, stratum: Stratum, before: StratumMemory, support: Support
) -> tuple[StratumMemory, Tally, Floats]:
    """Return what is remembered, the tally, and the variance that is due to who was asked."""
    heard = _faded(t, stratum, before)
    heard = replace(heard, reported=t, reports=heard.reports + support.reports)
    noise = stratum.noise.among(max(round(heard.size), support.reports))
    tally = noise.tally(stratum.epsilon, support)
    known = before.values / before.reports if before.reports else tally.estimate
    tally = replace(tally, variance=noise.bin_variance(stratum.epsilon, tally, known))
    shares = np.clip(known, 0.0, 1.0)
    drawn = sampling(support.reports, noise.population) * shares * (1 - shares)
    values = heard.values + support.reports * tally.estimate
    return replace(heard, values=values), tally, drawn


def _after_silence(t: int, stratum: Stratum, before: StratumMemory) -> StratumMemory:
    """Return what is remembered of a stratum without reports at t.

    Where many are missing, it is an outage, which for up to a window says nothing of the stratum's
    size. Devices that are silent for longer are gone.
    """
    recent = t - before.reported <= stratum.window
    if recent and before.reports * turn_share(stratum.window, t) > SURE * before.turns:
        return replace(before, t=t)
    return _faded(t, stratum, before)


def _faded(t: int, stratum: Stratum, before: StratumMemory) -> StratumMemory:
    """Return what is remembered at t, before any reports of t."""
    kept = (1 - 1 / stratum.window) ** (t - before.t)
    turns = kept * before.turns + turn_share(stratum.window, t)
    return StratumMemory(t, before.reported, kept * before.reports, turns, kept * before.values)


class _Combination:
    """The strata of one timestamp as arrays: a row for each of them and a column for each bin."""

    def __init__(self, t: int, parts: Sequence[_Part], memory: StrataMemory, bins: int) -> None:
        self._t, self._parts, self._memory = t, parts, memory
        sizes = np.array([part.heard.size for part in parts])
        self._total = float(sizes.sum())
        self._shares = sizes / self._total
        self._answered = np.array([bool(part.tally) for part in parts])
        self._estimates = np.array([part.tally.estimate for part in parts])
        self._variances = np.array([part.tally.variance for part in parts])
        self._lastings = np.array([np.zeros(bins) + part.tally.lasting for part in parts])
        self._frequencies = np.array([part.frequencies for part in parts])
        means = np.array([part.offset.mean for part in parts])
        self._offsets = means - self._shares @ means
        self._doubts = np.array([part.offset.variance for part in parts])
        longest = max(part.stratum.window for part in parts)
        elapsed = t - memory.t if memory.t else 1
        self._kept = (1 - 1 / (OFFSETS_OVER * longest)) ** elapsed
        self._recent = max(1 - 1 / (DRIFT_OVER * longest), 0.0) ** elapsed
        self._drift = memory.drift or Drift.unknown(bins)
        self._apart = self._shares @ self._offsets**2
        self._weights = self._best_weights()

    def _best_weights(self) -> Floats:
        noise = np.where(self._answered, self._variances.mean(axis=1), np.inf)
        drift = self._drift.mean_variance(self._apart, self._recent)
        doubt = np.minimum(self._doubts.mean(axis=1) + drift, UNKNOWN)
        return best_weights(self._shares, noise, doubt)

    def result(self, heard: Mapping[str, StratumMemory]) -> tuple[Tally, StrataMemory]:
        estimate = self._weights @ (self._estimates - self._offsets)
        lasting = self._lasting()
        variance = self._weights**2 @ (self._variances - self._lastings) + lasting
        reports = sum(part.tally.reports for part in self._parts)
        tally = Tally(estimate, variance, reports, self._sampled(), lasting)
        offsets = {part.stratum.name: self._learnt(part, estimate) for part in self._parts}
        return tally, StrataMemory(heard, offsets, self._contrasted(), self._t)

    def _lasting(self) -> Floats:
        """Return the variance of the error that successive tallies share, from offsets and sizes.

        What lasts in the tallies of the strata themselves has the same sign in all of them. Of a
        stratum without reports nobody knows how its offset has moved since: as a random walk, by
        itself in a window.
        """
        foreign = (self._weights - self._shares) ** 2
        ages = np.array([(self._t - p.heard.reported) / p.stratum.window for p in self._parts])
        doubts = np.array([part.heard.size_variance for part in self._parts]) / self._total**2
        moved = (
            foreign.sum() * self._drift.variance(self._apart, self._recent)
            + (foreign * ages) @ self._offsets**2
        )
        apart = self._frequencies - self._shares @ self._frequencies
        own = (self._weights @ np.sqrt(self._lastings)) ** 2
        lasting: Floats = foreign @ self._doubts + moved + doubts @ apart**2 + own
        return lasting

    def _sampled(self) -> float:
        """Return the factor of f(1-f) in the variance that is due to who was asked."""
        shares = self._shares @ self._frequencies
        drawn = self._weights**2 @ np.array([part.drawn for part in self._parts])
        most = float(np.sum(shares * (1 - shares)))
        return float(drawn.sum()) / most if most else 0.0

    def _learnt(self, part: _Part, estimate: Floats) -> Offset:
        distance = part.tally.estimate - estimate if part.tally else None
        return part.offset.learnt(distance, part.tally.variance, self._kept)

    def _contrasted(self) -> Drift:
        """Return the drift after comparing the figure with that of equal weights by device."""
        answered = np.where(self._answered, self._shares, 0.0)
        contrast = answered / answered.sum() - self._weights
        size = float(np.sqrt(np.sum(contrast**2)))
        if size < LEAST_CONTRAST:
            return self._drift
        contrast = contrast / size
        found = contrast @ (self._estimates - self._offsets)
        noise = contrast**2 @ (self._variances + self._doubts)
        return self._drift.learnt(found, noise, self._recent, self._kept)
