from __future__ import annotations

from ldpstream.oracles.hashing import MOST_BUCKETS
from ldpstream.oracles.local_hash_device import LocalHashDevice, probabilities
from ldpstream.oracles.noise import mean_noise
from ldpstream.privacy.epsilon import Epsilon, Odds


class Device(LocalHashDevice):
    """Local hashing into the number of buckets, about e^epsilon + 1, that has the least variance.

    Odds a : b within e^epsilon. Report: seed and bucket, 9 or 10 bytes. Variance: about
    4e^eps / (n(e^eps-1)^2) + f/n. There are at most 2^15 buckets, too few for epsilon > 10.4.
    Wang et al., "Locally differentially private protocols for frequency estimation", USENIX
    Security 2017, 4.3.

    >>> from ldpstream.privacy.randomness import SystemSource
    >>> device = Device(labels=1000, epsilon=Epsilon.of(1))
    >>> report = device.perturb(3, SystemSource())
    >>> device.decode(device.encode(report)) == report, device.buckets
    (True, 4)
    """

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        super().__init__(labels, epsilon, _best_buckets(labels, Odds.within(epsilon)))


def _best_buckets(labels: int, odds: Odds) -> int:
    def noise(buckets: int) -> float:
        collision = LocalHashDevice.family.collision(buckets)
        return mean_noise(*probabilities(odds, buckets, collision), labels)

    near = int(odds.ratio) + 1
    return min(sorted({min(number, MOST_BUCKETS) for number in (near, near + 1)}), key=noise)
