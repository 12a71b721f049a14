"""The influence of a fake report on an estimate: no oracle prevents it, but some limit it better.

A fake report supports a label or does not. With a share b of fakes, one that always supports the
label moves its estimate by b((1-q)/(p-q) - f), and one that never does by -b(q/(p-q) + f) (Cao,
Jia and Gong, "Data poisoning attacks to local differential privacy protocols", USENIX Security
2021). A device that only lies about its value moves it by b(1-f), and by -bf, whatever the oracle.
"""

from __future__ import annotations

from dataclasses import dataclass

from ldpstream.oracles.noise import mean_noise
from ldpstream.oracles.registry import Oracle
from ldpstream.privacy.epsilon import Epsilon

TIE = 1e-6
"""The relative difference of gain up to which oracles tie."""
BEARABLE_NOISE = 1.5
"""The factor on the best oracle's variance that robustness may cost."""


@dataclass(frozen=True)
class Gain:
    """The most that fake reports can move an estimate, per unit of their share of all reports."""

    raising: float
    """(1-q)/(p-q), upwards."""
    lowering: float
    """q/(p-q), downwards."""
    noise: float
    """The variance of an estimate from one report, averaged over the labels."""

    @property
    def worst(self) -> float:
        return max(self.raising, self.lowering)

    @classmethod
    def of(cls, oracle: Oracle, labels: int, epsilon: Epsilon) -> Gain:
        """Return the gain of an oracle.

        >>> round(Gain.of(Oracle.OUE, 32, Epsilon.of(1)).raising, 2)
        3.16
        """
        device = oracle.device(labels, epsilon)
        reach = device.p - device.q
        return cls(
            float((1 - device.q) / reach),
            float(device.q / reach),
            mean_noise(device.p, device.q, labels),
        )


def choose_robust(labels: int, epsilon: Epsilon) -> Oracle:
    """Return the oracle that limits a fake report most, among those with bearable noise.

    Among ties, such as BLH and Hadamard, it is the one with the smallest report.

    >>> choose_robust(32, Epsilon.of(1)).name, choose_robust(2, Epsilon.of(1)).name
    ('HADAMARD', 'GRR')
    """
    gains = {oracle: Gain.of(oracle, labels, epsilon) for oracle in Oracle}
    bearable = BEARABLE_NOISE * min(gain.noise for gain in gains.values())
    quiet = [oracle for oracle in Oracle if gains[oracle].noise <= bearable]
    least = min(gains[oracle].worst for oracle in quiet) * (1 + TIE)
    best = [oracle for oracle in quiet if gains[oracle].worst <= least]
    return min(best, key=lambda oracle: oracle.device(labels, epsilon).report_bytes)
