"""The formulas of `strata.py` and `refine/offsets.py` for many timestamps, compiled.

What is learnt of sizes, offsets and drift at one timestamp counts at the next, so there is nothing
to vectorise over time: the kernel walks through it. A test compares the two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldpstream.arrays import Counts, Floats, Indexes
from ldpstream.compiled import compiled, inlined
from ldpstream.mechanisms.strata import DRIFT_OVER, GONE, LEAST_CONTRAST, OFFSETS_OVER, SURE
from ldpstream.refine.offsets import AVERAGED, LEAST, UNKNOWN


class _Memory(NamedTuple):
    """What is remembered from one timestamp to the next; a row of a matrix is a stratum's."""

    # `strata.StratumMemory`
    t: Indexes
    reported: Indexes
    reports: Floats
    turns: Floats
    values: Floats
    # `offsets.Offset`
    precision: Floats
    total: Floats
    spread: Floats
    # `offsets.Drift`; its weight is the one entry of an array, so that it can be changed
    contrast: Floats
    noise: Floats
    weight: Floats
    evidence: Floats
    information: Floats


class _Moment(NamedTuple):
    """One timestamp; a row of a matrix is a stratum's, and `apart` and `moved` are of all."""

    estimates: Floats
    noises: Floats
    drawn: Floats
    """The part of the noise that is due to who was drawn to report."""
    frequencies: Floats
    shares: Floats
    """Of the fleet; 0 for a stratum that is left out."""
    weights: Floats
    gains: Floats
    """The weights as far as the noise decides them."""
    contrast: Floats
    """How far weights by device are from these."""
    offsets: Floats
    doubts: Floats
    """The variances of the averages of offsets."""
    apart: Floats
    """The mean squares of the offsets."""
    moved: Floats
    """The variances of offsets about their averages."""


@compiled()
def combined(
    times: Indexes,
    counts: Counts,
    reports: Counts,
    windows: Indexes,
    turns: Floats,
    readings: Floats,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return estimates, variances, lasting variances and sampled shares, in order of time.

    All begins with an empty memory. `counts` and `reports` are by timestamp and stratum; a row of
    `readings` is q, p - q, and base and slope of the variance.
    """
    length, strata, bins = counts.shape
    shown, variances = np.zeros((length, bins)), np.ones((length, bins))
    lasting, sampled = np.zeros((length, bins)), np.zeros(length)
    # Numba builds no tuples of arrays by loops or by keyword: the fields are in order.
    memory = _Memory(
        np.full(strata, times[0] - 1),
        np.full(strata, times[0] - 1),
        np.zeros(strata),
        np.zeros(strata),
        np.zeros((strata, bins)),
        np.zeros(strata),
        np.zeros((strata, bins)),
        np.zeros((strata, bins)),
        np.zeros(bins),
        np.zeros(bins),
        np.zeros(1),
        np.zeros(bins),
        np.zeros(bins),
    )
    now = _Moment(
        np.zeros((strata, bins)),
        np.zeros((strata, bins)),
        np.zeros((strata, bins)),
        np.zeros((strata, bins)),
        np.zeros(strata),
        np.zeros(strata),
        np.zeros(strata),
        np.zeros(strata),
        np.zeros((strata, bins)),
        np.zeros((strata, bins)),
        np.zeros(bins),
        np.zeros(bins),
    )
    last_t = 0
    for place in range(length):
        t, heard = times[place], reports[place]
        _hear(memory, now, t, counts[place], heard, windows, turns[place], readings)
        fleet, longest = _share(memory, now, heard, windows)
        if longest == 0:
            continue
        elapsed = t - last_t if last_t else 1
        kept = (1 - 1 / (OFFSETS_OVER * longest)) ** elapsed
        recent = max(1 - 1 / (DRIFT_OVER * longest), 0.0) ** elapsed
        repeated = (1 + recent**2) / (1 - recent**2)
        _recall_offsets(memory, now, repeated)
        _weigh(memory, now, heard, repeated)
        sampled[place] = _show(
            memory, now, t, windows, fleet, shown[place], variances[place], lasting[place]
        )
        _learn_drift(memory, now, heard, recent, kept)
        _learn_offsets(memory, now, heard, shown[place], kept)
        last_t = t
    return shown, variances, lasting, sampled


@inlined
def _hear(
    memory: _Memory,
    now: _Moment,
    t: int,
    counts: Counts,
    heard: Counts,
    windows: Indexes,
    turns: Floats,
    readings: Floats,
) -> None:
    """Take in the reports of each stratum, or its silence."""
    for k in range(len(heard)):
        n, window = heard[k], windows[k]
        before = memory.reports[k]
        outage = t - memory.reported[k] <= window and before * turns[k] > SURE * memory.turns[k]
        kept, drawing = 1.0, 0.0
        if n > 0 or not outage:
            kept = (1 - 1 / window) ** (t - memory.t[k])
            memory.turns[k] = kept * memory.turns[k] + turns[k]
            memory.reports[k] = kept * before + n
        memory.t[k] = t
        if n > 0:
            memory.reported[k] = t
            people = max(np.rint(memory.reports[k] / memory.turns[k]), n)
            drawing = max(people - n, 0) / (max(people - 1, 1) * n)
        for b in range(counts.shape[1]):
            known = memory.values[k, b] / before if before > 0 else 0.0
            memory.values[k, b] *= kept
            now.drawn[k, b], now.noises[k, b], now.estimates[k, b] = 0.0, 1.0, 0.0
            if n > 0:
                estimate = (counts[k, b] / n - readings[k, 0]) / readings[k, 1]
                f = min(max(known if before > 0 else estimate, 0.0), 1.0)
                now.drawn[k, b] = drawing * f * (1 - f)
                now.noises[k, b] = (readings[k, 2] + f * readings[k, 3]) / n + now.drawn[k, b]
                now.estimates[k, b] = estimate
                memory.values[k, b] += n * estimate
            frequency = memory.values[k, b] / max(memory.reports[k], 1e-300)
            now.frequencies[k, b] = min(max(frequency, 0.0), 1.0)


@inlined
def _share(memory: _Memory, now: _Moment, heard: Counts, windows: Indexes) -> tuple[float, int]:
    """Return the size of the fleet and its longest window; (0, 0) if nobody has answered."""
    fleet, longest, answers = 0.0, 0, 0
    for k in range(len(windows)):
        now.shares[k] = memory.reports[k] / memory.turns[k]
        if now.shares[k] > GONE:
            fleet += now.shares[k]
            longest = max(longest, windows[k])
            answers += heard[k] > 0
        else:
            now.shares[k] = 0.0
    if answers == 0:
        return 0.0, 0
    now.shares[:] /= fleet
    return fleet, longest


@inlined
def _recall_offsets(memory: _Memory, now: _Moment, repeated: float) -> None:
    """Set the offsets, and how far each may be from its average."""
    strata, bins = now.offsets.shape
    for b in range(bins):
        middle = 0.0
        for k in range(strata):
            if now.shares[k] == 0.0:
                memory.precision[k], memory.total[k, b], memory.spread[k, b] = 0.0, 0.0, 0.0
            precision = memory.precision[k]
            now.offsets[k, b] = memory.total[k, b] / precision if precision else 0.0
            middle += now.shares[k] * now.offsets[k, b]
            now.doubts[k, b] = (
                min(memory.spread[k, b] / precision**2, UNKNOWN) if precision else UNKNOWN
            )
        now.apart[b] = 0.0
        for k in range(strata):
            now.offsets[k, b] -= middle
            now.apart[b] += now.shares[k] * now.offsets[k, b] ** 2
        known = max(memory.information[b], LEAST)
        unseen = min(np.sqrt(2 * repeated / known), now.apart[b])
        now.moved[b] = max(memory.evidence[b], 0.0) / known + unseen


@inlined
def _weigh(memory: _Memory, now: _Moment, heard: Counts, repeated: float) -> None:
    """Set the weights of the strata that have answered (`offsets.best_weights`)."""
    strata, bins = now.offsets.shape
    known = max(memory.information.sum(), LEAST)
    part = (bins - 1) / bins if bins > 1 else 1.0
    unseen = min(np.sqrt(2 * repeated / (known * part)), now.apart.mean())
    drifting = max(memory.evidence.sum() / known, 0.0) + unseen
    pulled, gains = 0.0, 0.0
    for k in range(strata):
        now.weights[k], now.gains[k] = 0.0, 0.0
        if now.shares[k] > 0.0 and heard[k] > 0:
            doubt = min(now.doubts[k].mean() + drifting, UNKNOWN)
            gain = 1 / (now.noises[k].mean() / AVERAGED + doubt)
            now.gains[k], now.weights[k] = gain, gain * now.shares[k] * doubt
            pulled += now.weights[k]
            gains += gain
    for k in range(strata):
        now.weights[k] += now.gains[k] * (1 - pulled) / gains


@inlined
def _show(
    memory: _Memory,
    now: _Moment,
    t: int,
    windows: Indexes,
    fleet: float,
    shown: Floats,
    variances: Floats,
    lastings: Floats,
) -> float:
    """Set the figure, its variance, and what lasts of that; return the sampled share."""
    strata, bins = now.offsets.shape
    foreign, drawn, most = 0.0, 0.0, 0.0
    for k in range(strata):
        if now.shares[k] > 0.0:
            foreign += (now.weights[k] - now.shares[k]) ** 2
    for b in range(bins):
        mean = 0.0
        for k in range(strata):
            mean += now.shares[k] * now.frequencies[k, b]
        lasting, noise, figure = foreign * now.moved[b], 0.0, 0.0
        for k in range(strata):
            if now.shares[k] == 0.0:
                continue
            weight = now.weights[k]
            age = (t - memory.reported[k]) / windows[k]
            counted = memory.reports[k] / memory.turns[k] ** 2 / fleet**2
            moved = now.doubts[k, b] + age * now.offsets[k, b] ** 2
            lasting += (weight - now.shares[k]) ** 2 * moved
            lasting += counted * (now.frequencies[k, b] - mean) ** 2
            noise += weight**2 * now.noises[k, b]
            figure += weight * (now.estimates[k, b] - now.offsets[k, b])
            drawn += weight**2 * now.drawn[k, b]
        shown[b], lastings[b], variances[b] = figure, lasting, noise + lasting
        most += mean * (1 - mean)
    return drawn / most if most else 0.0


@inlined
def _learn_drift(memory: _Memory, now: _Moment, heard: Counts, recent: float, kept: float) -> None:
    """Compare the figure with that of equal weights by device (`offsets.Drift.learnt`)."""
    strata, bins = now.offsets.shape
    answered, size = 0.0, 0.0
    for k in range(strata):
        answered += now.shares[k] if heard[k] > 0 else 0.0
    for k in range(strata):
        own = now.shares[k] / answered if heard[k] > 0 else 0.0
        now.contrast[k] = own - now.weights[k]
        size += now.contrast[k] ** 2
    size = np.sqrt(size)
    if size < LEAST_CONTRAST:
        return
    memory.weight[0] = recent * memory.weight[0] + 1
    weight = memory.weight[0]
    for b in range(bins):
        found, noise = 0.0, 0.0
        for k in range(strata):
            apart = now.contrast[k] / size
            found += apart * (now.estimates[k, b] - now.offsets[k, b])
            noise += apart**2 * (now.noises[k, b] + now.doubts[k, b])
        memory.contrast[b] = recent * memory.contrast[b] + found
        memory.noise[b] = recent**2 * memory.noise[b] + noise
        known = memory.noise[b] / weight**2
        square = (memory.contrast[b] / weight) ** 2
        memory.evidence[b] = kept * memory.evidence[b] + (square - known) / known**2
        memory.information[b] = kept * memory.information[b] + 1 / known**2


@inlined
def _learn_offsets(
    memory: _Memory, now: _Moment, heard: Counts, shown: Floats, kept: float
) -> None:
    """Take in how far each stratum is off the figure (`offsets.Offset.learnt`)."""
    strata, bins = now.offsets.shape
    for k in range(strata):
        if now.shares[k] == 0.0:
            continue
        precise = 1 / now.noises[k].mean() if heard[k] > 0 else 0.0
        memory.precision[k] = kept * memory.precision[k] + precise
        for b in range(bins):
            distance = now.estimates[k, b] - shown[b]
            memory.total[k, b] = kept * memory.total[k, b] + precise * distance
            memory.spread[k, b] = kept**2 * memory.spread[k, b] + precise**2 * now.noises[k, b]
