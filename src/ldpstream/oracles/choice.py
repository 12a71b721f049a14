"""Which oracle to use."""

from __future__ import annotations

from ldpstream.oracles.noise import mean_noise
from ldpstream.oracles.registry import Oracle
from ldpstream.privacy.epsilon import Epsilon

TIE = 1e-9
"""Relative difference of variance that counts as none: far below anything that can be observed."""


def choose(labels: int, epsilon: Epsilon) -> Oracle:
    """The oracle with the least mean variance; of those that tie, the one with the smallest report.

    Device and collector come to the same answer: it depends on exact fractions only, and a last
    tie goes to the oracle that is registered first.

    >>> choose(2, Epsilon.of(1)).name, choose(128, Epsilon.of(1)).name
    ('GRR', 'SUBSET')
    """
    devices = {oracle: oracle.device(labels, epsilon) for oracle in Oracle}
    noise = {oracle: mean_noise(device.p, device.q, labels) for oracle, device in devices.items()}
    bearable = min(noise.values()) * (1 + TIE)
    best = [oracle for oracle in Oracle if noise[oracle] <= bearable]
    return min(best, key=lambda oracle: devices[oracle].report_bytes)
