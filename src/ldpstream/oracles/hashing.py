"""The hash of the local-hashing oracles: cheap in Python, in machine code and in JavaScript.

    scattered = scatter(label)                            a fixed bijection of 16-bit numbers
    hash = ((multiplier * scattered + increment) mod 2^32) >> 15                      17 bits
    bucket = (hash * buckets) >> 17

Multiply-shift with an increment is *strongly universal* when the word has at least
key + hash - 1 bits (Dietzfelbinger, STACS 1996): over a uniform seed (multiplier, increment), the
hashes of two different labels are exactly independent and uniform. Here 16 + 17 - 1 = 32. So the
collision probability that an estimate divides by is a known fraction, not an assumption.

Three labels are not exactly independent. Those of an arithmetic progression would be far from it
without `scatter`, which leaves no more progressions among the labels than chance would.
`hash_vectors.json` has test vectors for implementations in other languages.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache


@dataclass(frozen=True)
class MultiplyShift:
    """The strongly universal family for keys and hashes of these widths.

    >>> full = MultiplyShift(key_bits=16, hash_bits=17)
    >>> full.word_bits
    32
    >>> full.hash(multiplier=0x9E3779B1, increment=0x7F4A7C15, key=5)
    76991
    """

    key_bits: int
    hash_bits: int

    @property
    def word_bits(self) -> int:
        return self.key_bits + self.hash_bits - 1

    def hash(self, multiplier: int, increment: int, key: int) -> int:
        word = multiplier * key + increment & (1 << self.word_bits) - 1
        return word >> self.key_bits - 1

    def bucket(self, multiplier: int, increment: int, key: int, buckets: int) -> int:
        return self.hash(multiplier, increment, key) * buckets >> self.hash_bits

    def collision(self, buckets: int) -> Fraction:
        """Return Pr[two different keys share a bucket]: the sum of the buckets' squared shares.

        The 2^hash_bits hashes fall into buckets of two sizes that differ by one.

        >>> MultiplyShift(16, 17).collision(2), MultiplyShift(2, 3).collision(3)
        (Fraction(1, 2), Fraction(11, 32))
        """
        size, larger = divmod(1 << self.hash_bits, buckets)
        pairs = larger * (size + 1) ** 2 + (buckets - larger) * size**2
        return Fraction(pairs, 1 << 2 * self.hash_bits)


FAMILY = MultiplyShift(key_bits=16, hash_bits=17)

MOST_BUCKETS = 1 << 15
"""The limit that keeps hash * buckets within 32 bits."""


@lru_cache(maxsize=8)
def scattered(labels: int) -> tuple[int, ...]:
    """Return `scatter` of 0 .. labels-1 as a table: Python takes longer for larger products.

    >>> scattered(4)[2] == scatter(2)
    True
    """
    return tuple(map(scatter, range(labels)))


def scatter(label: int) -> int:
    """Return a bijection of 0 .. 65535: xorshifts and odd multiplications, which are invertible.

    Constants: C. Wellons, "hash-prospector" (public domain), the 16-bit hash of three rounds. The
    first line keeps 0 from being a fixed point, and doubled labels from having doubled values.

    >>> [scatter(label) for label in range(4)]
    [18906, 2498, 21962, 3410]
    """
    x = label ^ 0x9E37
    x ^= x >> 7
    x = x * 0x2993 & 0xFFFF
    x ^= x >> 5
    x = x * 0xE877 & 0xFFFF
    x ^= x >> 9
    x = x * 0x0235 & 0xFFFF
    return x ^ x >> 10
