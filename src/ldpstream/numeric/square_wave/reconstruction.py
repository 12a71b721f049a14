"""Expectation maximisation (EM): from the distribution of reports to that of values."""

from __future__ import annotations

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.compiled import compiled
from ldpstream.numeric.band_device import BandDevice

MOST_ROUNDS = 10_000
SETTLED = 1e-5
"""The share of users: EM stops when a round moves less than it."""


def reconstruct(cover: Floats, device: BandDevice, *, smooth: bool = True) -> Floats:
    """Return the distribution over levels under which reports with this cover are most likely.

    `smooth` averages each level with its neighbours in every round (EMS, Li et al., SIGMOD 2020):
    without it, the result overfits the noise, and many rounds are needed.

    >>> from ldpstream.privacy.epsilon import Epsilon
    >>> device = BandDevice(levels=5, epsilon=Epsilon.of(2), width=3)
    >>> blurred = np.array([0, 1, 1, 1, 0, 0, 0])
    >>> reconstruct(blurred, device, smooth=False).round(2).tolist()
    [0.0, 1.0, 0.0, 0.0, 0.0]
    """
    p, q = float(device.p), float(device.q)
    reports = np.maximum(q + (p - q) * cover, 0.0)
    reports /= reports.sum()
    shares = np.full(device.labels, 1 / device.labels)
    for _ in range(MOST_ROUNDS):
        updated = _likelier(shares, reports, device.width, p, q)
        if smooth:
            updated = _smoothed(updated)
        updated /= updated.sum()
        moved = np.abs(updated - shares).sum() / 2
        shares = updated
        if moved < SETTLED:
            break
    return shares


@compiled()
def _likelier(shares: Floats, reports: Floats, width: int, p: float, q: float) -> Floats:
    """Do one round of EM: scale each level's share by the observed over the expected reports.

    The matrix of the band is never built. Sums over a band are running sums: O(levels + width).
    """
    levels, outputs = len(shares), len(reports)
    surprise = np.empty(outputs)
    covered = 0.0
    for output in range(outputs):
        if output < levels:
            covered += shares[output]
        if output >= width:
            covered -= shares[output - width]
        surprise[output] = reports[output] / (q + (p - q) * max(covered, 0.0))
    total = surprise.sum()
    in_band = surprise[: width - 1].sum()
    likelier = np.empty(levels)
    for level in range(levels):
        in_band += surprise[level + width - 1]
        likelier[level] = shares[level] * (q * total + (p - q) * in_band)
        in_band -= surprise[level]
    return likelier


@compiled()
def _smoothed(shares: Floats) -> Floats:
    """Average each level with its neighbours, weighted 1 : 2 : 1; an end has only one neighbour."""
    last = len(shares) - 1
    smoothed = np.empty(len(shares))
    smoothed[0] = (2 * shares[0] + shares[1]) / 3
    smoothed[last] = (2 * shares[last] + shares[last - 1]) / 3
    for level in range(1, last):
        smoothed[level] = (shares[level - 1] + 2 * shares[level] + shares[level + 1]) / 4
    return smoothed
