"""The choice of the best oracle for a stream."""

from __future__ import annotations

from ldpstream.oracles.noise import mean_noise
from ldpstream.oracles.registry import Oracle
from ldpstream.privacy.epsilon import Epsilon

TIE = 1e-9
"""The relative difference of variance up to which oracles tie: far below what can be observed."""

LARGE_REPORT = 256
"""The bytes above which a report is large: a bitmap of more than 2,040 labels.

Its cost grows with the labels for everyone: the device draws every bit (0.15 s at 65,536 labels),
sends 8 kB, and the collector counts them one by one (docs/oracles.md)."""
WORTH = 0.05
"""The share of variance that a large report must save to be chosen."""


def choose(labels: int, epsilon: Epsilon) -> Oracle:
    """Return the oracle with the least mean variance; among ties, that with the smallest report.

    Large reports are left out, unless they save more than WORTH of the variance.

    Devices and collectors make the same choice: it depends on exact fractions only, and remaining
    ties go to the oracle that is registered first.

    >>> choose(2, Epsilon.of(1)).name, choose(128, Epsilon.of(1)).name
    ('GRR', 'SUBSET')
    >>> choose(65_536, Epsilon.of(1)).name
    'OLH'
    """
    devices = {oracle: oracle.device(labels, epsilon) for oracle in Oracle}
    noise = {oracle: mean_noise(device.p, device.q, labels) for oracle, device in devices.items()}
    small = {o: noise[o] for o in Oracle if devices[o].report_bytes <= LARGE_REPORT}
    enough = min(small.values()) <= min(noise.values()) * (1 + WORTH)
    considered = small if enough else noise
    bearable = min(considered.values()) * (1 + TIE)
    best = [oracle for oracle in considered if noise[oracle] <= bearable]
    return min(best, key=lambda oracle: devices[oracle].report_bytes)
