from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from ldpstream.oracles.device_half import DeviceHalf, bytes_for, check_range
from ldpstream.oracles.hashing import FAMILY, MOST_BUCKETS, scattered
from ldpstream.oracles.noise import mean_noise
from ldpstream.privacy.epsilon import Epsilon, Odds
from ldpstream.privacy.randomness import Source, either


class Hashed(NamedTuple):
    """A report: the seed of a hash, and a bucket that is probably that of the value."""

    multiplier: int
    increment: int
    bucket: int


class LocalHashDevice(DeviceHalf[Hashed]):
    """Hash the value into g buckets under a fresh seed, then randomise the bucket like GRR.

    The seed is drawn independently of the value, and sent. A report supports the labels that hash
    to its bucket: the true one with p = a / (a + b(g-1)), and each other one with
    q = pc + (1-p)(1-c)/(g-1), where c is the probability that two labels share a bucket: with
    shares s_j, Pr[support] = sum_j s_j (p s_j + (1-p)(1-s_j)/(g-1)) and c = sum_j s_j^2.
    """

    family = FAMILY

    def __init__(self, labels: int, epsilon: Epsilon, buckets: int) -> None:
        super().__init__(labels, epsilon)
        odds = Odds.within(epsilon)
        self.buckets = buckets
        self._favour = odds.favour
        self._total = odds.favour + odds.against * (buckets - 1)
        self.p, self.q = _probabilities(odds, buckets, self.family.collision(buckets))
        self.worst_ratio = odds.ratio
        self._keys = scattered(labels)
        self._word = self.family.word_bits
        self.payload_bytes = (2 * self._word + 7) // 8 + bytes_for(buckets)

    def bucket_of(self, multiplier: int, increment: int, label: int) -> int:
        """Return the bucket of a label under this seed."""
        return self.family.bucket(multiplier, increment, self._key(label), self.buckets)

    def _key(self, label: int) -> int:
        return self._keys[label]

    def supports(self, report: Hashed, label: int) -> bool:
        return self.bucket_of(report.multiplier, report.increment, label) == report.bucket

    def _perturb(self, value: int, source: Source) -> Hashed:
        multiplier = source.below(1 << self._word)
        increment = source.below(1 << self._word)
        truthful = source.coin(self._favour, self._total)
        other = source.below(self.buckets - 1)
        bucket = self.bucket_of(multiplier, increment, value)
        sent = either(truthful, bucket, other + (other >= bucket))
        return Hashed(multiplier, increment, sent)

    def _pack(self, report: Hashed) -> int:
        seed = report.multiplier | report.increment << self._word
        return seed | report.bucket << 2 * self._word

    def _unpack(self, packed: int) -> Hashed:
        word = (1 << self._word) - 1
        bucket = check_range("bucket", packed >> 2 * self._word, self.buckets)
        return Hashed(packed & word, packed >> self._word & word, bucket)


class BlhDevice(LocalHashDevice):
    """BLH: local hashing into two buckets.

    Odds a : b within e^epsilon. Report: seed and bucket, 9 bytes. Variance:
    (e^eps+1)^2 / (n(e^eps-1)^2) - f/n. It is here for comparison: OLH is never worse.
    Bassily and Smith, STOC 2015, as generalised by Wang et al., USENIX Security 2017, 4.3.

    >>> from ldpstream.privacy.randomness import SystemSource
    >>> device = BlhDevice(labels=1000, epsilon=Epsilon.of(1))
    >>> report = device.perturb(3, SystemSource())
    >>> device.decode(device.encode(report)) == report, device.q
    (True, Fraction(1, 2))
    """

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        super().__init__(labels, epsilon, buckets=2)


class OlhDevice(LocalHashDevice):
    """OLH: local hashing into the number of buckets, about e^epsilon + 1, with the least variance.

    Odds a : b within e^epsilon. Report: seed and bucket, 9 or 10 bytes. Variance: about
    4e^eps / (n(e^eps-1)^2) + f/n. There are at most 2^15 buckets, too few for epsilon > 10.4.
    Wang et al., "Locally differentially private protocols for frequency estimation", USENIX
    Security 2017, 4.3.

    >>> from ldpstream.privacy.randomness import SystemSource
    >>> device = OlhDevice(labels=1000, epsilon=Epsilon.of(1))
    >>> report = device.perturb(3, SystemSource())
    >>> device.decode(device.encode(report)) == report, device.buckets
    (True, 4)
    """

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        super().__init__(labels, epsilon, _best_buckets(labels, Odds.within(epsilon)))


def _best_buckets(labels: int, odds: Odds) -> int:
    def noise(buckets: int) -> float:
        collision = LocalHashDevice.family.collision(buckets)
        return mean_noise(*_probabilities(odds, buckets, collision), labels)

    near = int(odds.ratio) + 1
    return min(sorted({min(number, MOST_BUCKETS) for number in (near, near + 1)}), key=noise)


def _probabilities(odds: Odds, buckets: int, collision: Fraction) -> tuple[Fraction, Fraction]:
    """Return p and q of local hashing, given the probability that two labels share a bucket."""
    p = Fraction(odds.favour, odds.favour + odds.against * (buckets - 1))
    return p, p * collision + (1 - p) * (1 - collision) / (buckets - 1)
