"""Strata: parts of a fleet that report under promises of their own, combined into one tally.

A stratum is a level of privacy, or the devices that still have earlier terms: its devices share an
epsilon, a window, an oracle and a set of labels, and report in slots to rounds of their own. A
mechanism does not notice. It asks once, and is sent one `Tally` of the whole fleet.

With N_k devices in stratum k, N in all and W_k = N_k / N, the estimate is sum_k W_k f_k: each
device counts the same, so that it is unbiased for the fleet even if careful people hold other
values. docs/levels.md derives the formulas.
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
from ldpstream.refine.packing import pack, unpack

GONE = 1e-3
"""Devices that a stratum must be thought to have; one with fewer is left out."""
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
class Heard:
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
    spread: Floats
    """The sum of n^2 times the variance of the estimate, with squared weights."""

    @property
    def size(self) -> float:
        """The number of devices that the stratum stands for: about n w."""
        return self.reports / self.turns

    @property
    def size_variance(self) -> float:
        """At most so much, since counts scatter no more than a Poisson variable does."""
        return self.reports / self.turns**2

    @property
    def mean(self) -> Floats:
        """The frequencies of about the last window."""
        mean: Floats = self.values / self.reports
        return mean

    @property
    def mean_variance(self) -> Floats:
        """The variance of `mean`, as an estimate of the mean truth in that time."""
        variance: Floats = self.spread / self.reports**2
        return variance

    def to_json(self) -> dict[str, Any]:
        return {
            "t": self.t,
            "reported": self.reported,
            "reports": self.reports,
            "turns": self.turns,
            "values": pack(self.values),
            "spread": pack(self.spread),
        }

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Heard:
        arrays = {name: unpack(saved[name]) for name in ("values", "spread")}
        return cls(saved["t"], saved["reported"], saved["reports"], saved["turns"], **arrays)


@dataclass(frozen=True)
class StrataMemory:
    """What is remembered of all strata, by name. It is a value: to replay t, combine again."""

    heard: Mapping[str, Heard] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the memory as JSON, which restores exactly."""
        return {name: heard.to_json() for name, heard in self.heard.items()}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> StrataMemory:
        return cls({name: Heard.from_json(one) for name, one in saved.items()})


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
    parts = [
        _taken_in(t, one, supports.get(one.name), memory.heard.get(one.name)) for one in strata
    ]
    heard = StrataMemory({one.name: part.heard for one, part in zip(strata, parts, strict=True)})
    known = [part.shown(bins) for part in parts if part.heard.size > GONE]
    present = [part for part in known if part.tally]
    if not present:
        return Tally.empty(bins), heard
    return _combined(t, known), heard


def return_period(windows: Sequence[int]) -> int:
    """Return the timestamps after which the same devices of all strata report together again.

    >>> return_period([40, 20, 20])
    40
    """
    return math.lcm(*windows)


@dataclass(frozen=True)
class _Part:
    """One stratum at t, in bins of its own or, after `shown`, of the fleet."""

    stratum: Stratum
    heard: Heard
    tally: Tally
    mean: Floats
    mean_variance: Floats
    drawn: Floats
    """The part of the tally's variance that is due to who was asked."""

    def shown(self, bins: int) -> _Part:
        """Return the part in the bins of the fleet.

        Bins that become one have variances that add up: their errors are not positively correlated,
        neither by an oracle's noise nor by sampling.
        """

        def show(values: Floats) -> Floats:
            return self.stratum.shown(values, bins)

        tally = Tally(show(self.tally.estimate), show(self.tally.variance), self.tally.reports)
        means = show(self.mean), show(self.mean_variance)
        return _Part(self.stratum, self.heard, tally, *means, show(self.drawn))


def _taken_in(t: int, stratum: Stratum, support: Support | None, before: Heard | None) -> _Part:
    """Return the stratum with the reports of t counted in.

    Its variance is that at the frequencies known from before: its own estimate would make a bin
    that came out low by chance look more certain than it is.
    """
    zeros = np.zeros(stratum.noise.labels)
    before = before or Heard(t - 1, t - 1, 0.0, 0.0, zeros, zeros)
    reports = 0 if support is None else support.reports
    if not reports and _is_outage(t, stratum, before):
        heard = replace(before, t=t)
        return _Part(
            stratum, heard, Tally.empty(len(zeros)), heard.mean, heard.mean_variance, zeros
        )
    fades = (1 - 1 / stratum.window) ** (t - before.t)
    counted = fades * before.reports + reports
    turns = fades * before.turns + turn_share(stratum.window, t)
    tally, drawn = Tally.empty(len(zeros)), zeros
    if support is not None and reports:
        noise = stratum.noise.among(max(round(counted / turns), reports))
        tally = noise.tally(stratum.epsilon, support)
        known = before.mean if before.reports else tally.estimate
        variance = noise.bin_variance(stratum.epsilon, tally, known)
        tally = Tally(tally.estimate, variance, reports)
        shares = np.clip(known, 0.0, 1.0)
        drawn = sampling(reports, noise.population) * shares * (1 - shares)
    heard = Heard(
        t,
        t if reports else before.reported,
        counted,
        turns,
        fades * before.values + reports * tally.estimate,
        fades**2 * before.spread + reports**2 * tally.variance,
    )
    if not counted:
        return _Part(stratum, heard, tally, zeros, zeros, drawn)
    return _Part(stratum, heard, tally, heard.mean, heard.mean_variance, drawn)


def _is_outage(t: int, stratum: Stratum, before: Heard) -> bool:
    """Whether silence says nothing of a stratum's size: for up to a window, where many are missing.

    Devices that are silent for longer are gone.
    """
    recent = t - before.reported <= stratum.window
    return recent and before.reports * turn_share(stratum.window, t) > SURE * before.turns


def _combined(t: int, parts: Sequence[_Part]) -> Tally:
    """Combine strata of which some have reports.

    A stratum k without reports at t keeps the offset that it had from the others, d_k = m_k - M, of
    which nobody knows how it moved since: as a random walk, by d_k in a window.
    """
    total = sum(part.heard.size for part in parts)
    weight = np.array([part.heard.size / total for part in parts])
    answered = np.array([bool(part.tally) for part in parts])
    shared = np.where(answered, weight, 0.0) / weight[answered].sum()
    absent = np.where(answered, 0.0, weight)

    estimates = np.array([part.tally.estimate for part in parts])
    variances = np.array([part.tally.variance for part in parts])
    means = np.array([part.mean for part in parts])
    mean_variances = np.array([part.mean_variance for part in parts])
    offsets = means - shared @ means
    ages = np.array([(t - part.heard.reported) / part.stratum.window for part in parts])
    doubt = np.array([part.heard.size_variance for part in parts]) / total**2

    variance = shared**2 @ variances
    variance = variance + (absent**2 + (absent.sum() * shared) ** 2) @ mean_variances
    variance = variance + (absent**2 * ages) @ offsets**2
    variance = variance + doubt @ (means - weight @ means) ** 2
    centre = np.clip(weight @ means, 0.0, 1.0)
    most = float(np.sum(centre * (1 - centre)))
    drawn = float(np.sum(shared**2 @ np.array([part.drawn for part in parts])))
    return Tally(
        shared @ estimates + absent @ offsets,
        variance,
        sum(part.tally.reports for part in parts),
        sampled=drawn / most if most else 0.0,
    )
