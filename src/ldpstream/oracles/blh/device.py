from __future__ import annotations

from ldpstream.oracles.local_hash_device import LocalHashDevice
from ldpstream.privacy.epsilon import Epsilon


class Device(LocalHashDevice):
    """Local hashing into two buckets.

    Odds a : b within e^epsilon. Report: seed and bucket, 9 bytes. Variance:
    (e^eps+1)^2 / (n(e^eps-1)^2) - f/n. Kept to compare with: OLH is never worse.
    Bassily and Smith, STOC 2015, as generalised by Wang et al., USENIX Security 2017, 4.3.

    >>> from ldpstream.privacy.randomness import SystemSource
    >>> device = Device(labels=1000, epsilon=Epsilon.of(1))
    >>> report = device.perturb(3, SystemSource())
    >>> device.decode(device.encode(report)) == report, device.q
    (True, Fraction(1, 2))
    """

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        super().__init__(labels, epsilon, buckets=2)
