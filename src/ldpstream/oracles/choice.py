"""The choice of the best oracle for a stream."""

from __future__ import annotations

from ldpstream.oracles.noise import mean_noise
from ldpstream.oracles.registry import Oracle
from ldpstream.privacy.epsilon import Epsilon

TIE = 1e-9
"""The relative difference of variance up to which oracles tie: far below what can be observed."""


def choose(labels: int, epsilon: Epsilon) -> Oracle:
    """Return the oracle with the least mean variance; among ties, that with the smallest report.

    Devices and collectors make the same choice: it depends on exact fractions only, and remaining
    ties go to the oracle that is registered first.

    >>> choose(2, Epsilon.of(1)).name, choose(128, Epsilon.of(1)).name
    ('GRR', 'SUBSET')
    """
    devices = {oracle: oracle.device(labels, epsilon) for oracle in Oracle}
    noise = {oracle: mean_noise(device.p, device.q, labels) for oracle, device in devices.items()}
    bearable = min(noise.values()) * (1 + TIE)
    best = [oracle for oracle in Oracle if noise[oracle] <= bearable]
    return min(best, key=lambda oracle: devices[oracle].report_bytes)
