"""Strata of many timestamps, combined at once: what `strata.combine` does, compiled.

What is learnt of sizes, offsets and drift at one timestamp counts at the next, so there is nothing
to vectorise over time. The kernel walks through it with the formulas of `strata.py` and
`refine/offsets.py`, for strata whose reports are read by a pure oracle; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ldpstream.arrays import Counts, Floats, Indexes
from ldpstream.compiled import compiled
from ldpstream.mechanisms.messages import Tally
from ldpstream.mechanisms.noise import PureNoise
from ldpstream.mechanisms.strata import (
    DRIFT_OVER,
    GONE,
    LEAST_CONTRAST,
    OFFSETS_OVER,
    SURE,
    StrataMemory,
    Stratum,
    combine,
)
from ldpstream.oracles.collector_half import Support
from ldpstream.protocol.slots import turn_share
from ldpstream.refine.offsets import AVERAGED, LEAST, UNKNOWN


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
    found = _combined(np.array(times), counts, reports, windows, turns, readings)
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


@compiled()
def _combined(
    times: Indexes,
    counts: Counts,
    reports: Counts,
    windows: Indexes,
    turns: Floats,
    readings: Floats,
) -> tuple[Floats, Floats, Floats, Floats]:
    length, strata, bins = counts.shape
    shown = np.zeros((length, bins))
    variances = np.ones((length, bins))
    lastings = np.zeros((length, bins))
    sampled = np.zeros(length)
    # What is remembered of each stratum: `Heard` and `Offset`; of all of them: `Drift`.
    heard_t, reported = np.zeros(strata, np.int64), np.zeros(strata, np.int64)
    heard, turned, summed = np.zeros(strata), np.zeros(strata), np.zeros((strata, bins))
    precision = np.zeros(strata)
    total, spread = np.zeros((strata, bins)), np.zeros((strata, bins))
    drift_sum, drift_noise = np.zeros(bins), np.zeros(bins)
    evidence, information = np.zeros(bins), np.zeros(bins)
    drift_weight, last_t = 0.0, 0
    heard_t[:] = times[0] - 1
    reported[:] = times[0] - 1
    # One timestamp, stratum by stratum.
    estimates, noises = np.zeros((strata, bins)), np.zeros((strata, bins))
    drawn, frequencies = np.zeros((strata, bins)), np.zeros((strata, bins))
    shares, weights = np.zeros(strata), np.zeros(strata)
    offsets, doubts = np.zeros((strata, bins)), np.zeros((strata, bins))
    apart, moved = np.zeros(bins), np.zeros(bins)
    for place in range(length):
        t = times[place]
        fleet, longest, answers = 0.0, 0, 0
        for k in range(strata):
            n, window, turn = reports[place, k], windows[k], turns[place, k]
            before = heard[k]
            outage = t - reported[k] <= window and before * turn > SURE * turned[k]
            if n > 0 or not outage:
                kept = (1 - 1 / window) ** (t - heard_t[k])
                turned[k] = kept * turned[k] + turn
                heard[k] = kept * before + n
            else:
                kept = 1.0
            heard_t[k] = t
            if n > 0:
                reported[k] = t
                people = max(np.rint(heard[k] / turned[k]), n)
                drawing = max(people - n, 0) / (max(people - 1, 1) * n)
            for b in range(bins):
                known = summed[k, b] / before if before > 0 else 0.0
                summed[k, b] *= kept
                drawn[k, b], noises[k, b], estimates[k, b] = 0.0, 1.0, 0.0
                if n > 0:
                    estimate = (counts[place, k, b] / n - readings[k, 0]) / readings[k, 1]
                    f = min(max(known if before > 0 else estimate, 0.0), 1.0)
                    drawn[k, b] = drawing * f * (1 - f)
                    noises[k, b] = (readings[k, 2] + f * readings[k, 3]) / n + drawn[k, b]
                    estimates[k, b] = estimate
                    summed[k, b] += n * estimate
                frequency = summed[k, b] / max(heard[k], 1e-300)
                frequencies[k, b] = min(max(frequency, 0.0), 1.0)
            shares[k] = heard[k] / turned[k]
            if shares[k] > GONE:
                fleet += shares[k]
                longest = max(longest, window)
                answers += n > 0
            else:
                shares[k] = 0.0
        if answers == 0:
            continue
        shares /= fleet
        elapsed = t - last_t if last_t else 1
        kept = (1 - 1 / (OFFSETS_OVER * longest)) ** elapsed
        recent = max(1 - 1 / (DRIFT_OVER * longest), 0.0) ** elapsed
        repeated = (1 + recent**2) / (1 - recent**2)
        # Offsets, and how far each may be from its average.
        for b in range(bins):
            middle = 0.0
            for k in range(strata):
                if shares[k] == 0.0:
                    precision[k], total[k, b], spread[k, b] = 0.0, 0.0, 0.0
                offsets[k, b] = total[k, b] / precision[k] if precision[k] else 0.0
                middle += shares[k] * offsets[k, b]
                doubts[k, b] = (
                    min(spread[k, b] / precision[k] ** 2, UNKNOWN) if precision[k] else UNKNOWN
                )
            apart[b] = 0.0
            for k in range(strata):
                offsets[k, b] -= middle
                apart[b] += shares[k] * offsets[k, b] ** 2
            known = max(information[b], LEAST)
            unseen = min(np.sqrt(2 * repeated / known), apart[b])
            moved[b] = max(evidence[b], 0.0) / known + unseen
        # Weights.
        seen_by = max(information.sum(), LEAST)
        part = (bins - 1) / bins if bins > 1 else 1.0
        unseen = min(np.sqrt(2 * repeated / (seen_by * part)), apart.mean())
        drifting = max(evidence.sum() / seen_by, 0.0) + unseen
        pulled, gains = 0.0, 0.0
        for k in range(strata):
            weights[k] = 0.0
            if shares[k] > 0.0 and reports[place, k] > 0:
                doubt = min(doubts[k].mean() + drifting, UNKNOWN)
                gain = 1 / (noises[k].mean() / AVERAGED + doubt)
                weights[k] = gain * shares[k] * doubt
                pulled += weights[k]
                gains += gain
        for k in range(strata):
            if shares[k] > 0.0 and reports[place, k] > 0:
                doubt = min(doubts[k].mean() + drifting, UNKNOWN)
                gain = 1 / (noises[k].mean() / AVERAGED + doubt)
                weights[k] += gain * (1 - pulled) / gains
        # The figure, its error, and what lasts of it.
        foreign, asked, most = 0.0, 0.0, 0.0
        answered = 0.0
        for k in range(strata):
            if shares[k] > 0.0:
                foreign += (weights[k] - shares[k]) ** 2
                answered += shares[k] if reports[place, k] > 0 else 0.0
        size = 0.0
        for k in range(strata):
            own = shares[k] / answered if reports[place, k] > 0 else 0.0
            size += (own - weights[k]) ** 2
        size = np.sqrt(size)
        for b in range(bins):
            mean = 0.0
            for k in range(strata):
                mean += shares[k] * frequencies[k, b]
            lasting, noise, figure = foreign * moved[b], 0.0, 0.0
            contrast, doubt = 0.0, 0.0
            for k in range(strata):
                if shares[k] == 0.0:
                    continue
                away = (weights[k] - shares[k]) ** 2
                age = (t - reported[k]) / windows[k]
                counted = heard[k] / turned[k] ** 2 / fleet**2
                lasting += away * (doubts[k, b] + age * offsets[k, b] ** 2)
                lasting += counted * (frequencies[k, b] - mean) ** 2
                noise += weights[k] ** 2 * noises[k, b]
                figure += weights[k] * (estimates[k, b] - offsets[k, b])
                asked += weights[k] ** 2 * drawn[k, b]
                if size >= LEAST_CONTRAST:
                    own = shares[k] / answered if reports[place, k] > 0 else 0.0
                    apart_by = (own - weights[k]) / size
                    contrast += apart_by * (estimates[k, b] - offsets[k, b])
                    doubt += apart_by**2 * (noises[k, b] + doubts[k, b])
            shown[place, b] = figure
            lastings[place, b] = lasting
            variances[place, b] = noise + lasting
            most += mean * (1 - mean)
            if size >= LEAST_CONTRAST:
                drift_sum[b] = recent * drift_sum[b] + contrast
                drift_noise[b] = recent**2 * drift_noise[b] + doubt
                weight = recent * drift_weight + 1
                known = drift_noise[b] / weight**2
                square = (drift_sum[b] / weight) ** 2
                evidence[b] = kept * evidence[b] + (square - known) / known**2
                information[b] = kept * information[b] + 1 / known**2
        if size >= LEAST_CONTRAST:
            drift_weight = recent * drift_weight + 1
        sampled[place] = asked / most if most else 0.0
        # What is learnt of each stratum's offset.
        for k in range(strata):
            if shares[k] == 0.0:
                continue
            precise = 1 / noises[k].mean() if reports[place, k] > 0 else 0.0
            precision[k] = kept * precision[k] + precise
            for b in range(bins):
                distance = estimates[k, b] - shown[place, b]
                total[k, b] = kept * total[k, b] + precise * distance
                spread[k, b] = kept**2 * spread[k, b] + precise**2 * noises[k, b]
        last_t = t
    return shown, variances, lastings, sampled
