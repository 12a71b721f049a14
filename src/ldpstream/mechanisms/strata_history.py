"""Strata of many timestamps, combined at once.

Strata whose reports are read by a pure oracle are combined by a compiled kernel, all others by
`strata.combine`, a timestamp at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ldpstream.mechanisms.messages import Tally
from ldpstream.mechanisms.noise import PureNoise
from ldpstream.mechanisms.strata import StrataMemory, Stratum, combine
from ldpstream.mechanisms.strata_kernels import combined
from ldpstream.oracles.collector_half import Support
from ldpstream.protocol.slots import turn_share


def combine_all(
    times: Sequence[int],
    strata: Sequence[Stratum],
    supports: Sequence[Mapping[str, Support]],
    bins: int,
) -> list[Tally]:
    """Return the tallies of a fleet of which nothing was known before, in order of time."""
    if all(isinstance(one.noise, PureNoise) and one.to is None for one in strata):
        return _compiled(times, strata, supports, bins)
    tallies, memory = [], StrataMemory()
    for t, heard in zip(times, supports, strict=True):
        tally, memory = combine(t, strata, heard, memory, bins)
        tallies.append(tally)
    return tallies


def _compiled(
    times: Sequence[int],
    strata: Sequence[Stratum],
    supports: Sequence[Mapping[str, Support]],
    bins: int,
) -> list[Tally]:
    reports = np.zeros((len(times), len(strata)), np.int64)
    counts = np.zeros((len(times), len(strata), bins), np.int64)
    for place, heard in enumerate(supports):
        for k, one in enumerate(strata):
            support = heard.get(one.name)
            if support is not None and support.reports:
                reports[place, k], counts[place, k] = support.reports, support.counts
    windows = np.array([one.window for one in strata])
    turns = np.array([[turn_share(one.window, t) for one in strata] for t in times])
    readings = np.array([_reading(one) for one in strata])
    found = combined(np.array(times), counts, reports, windows, turns, readings)
    empty = Tally.empty(bins)
    return [
        Tally(estimate, variance, total, float(sampled), lasting) if total else empty
        for estimate, variance, lasting, sampled, total in zip(
            *found, reports.sum(axis=1).tolist(), strict=True
        )
    ]


def _reading(stratum: Stratum) -> list[float]:
    """Return how a stratum's reports are read: q, p - q, and variance = (base + f slope) / n."""
    assert isinstance(stratum.noise, PureNoise)
    pure = stratum.noise.pure(stratum.epsilon)
    base, top = pure.variance(1, np.array([0.0, 1.0]))
    return [pure.q, pure.p - pure.q, base, top - base]
