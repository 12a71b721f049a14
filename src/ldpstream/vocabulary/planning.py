"""What to expect of an open vocabulary before it is begun."""

from __future__ import annotations

from math import sqrt, tanh

from ldpstream.privacy.epsilon import Epsilon
from ldpstream.vocabulary.device import LEAST_BITS, MOST_BITS

PREFIXES = (2, 4, 6)
"""The usual lengths of prefixes: texts of up to 8 bytes are found."""
FOUND_AT = 6.5
"""Standard errors in one group of prefixes at which a text is found almost for sure."""

LISTED_AT = 4.5
"""Standard errors from which a text that is followed is listed."""


def planned_bits(population: int, epsilon: Epsilon) -> int:
    """Return b, such that there are as many buckets as devices that reported without noise.

    A report of a text has the information of ((e^eps - 1) / (e^eps + 1))^2 reports without noise;
    with so many buckets, what texts add to each other's by chance is small beside the noise.

    >>> planned_bits(1_000_000, Epsilon.of(2)), planned_bits(10_000, Epsilon.of(1))
    (20, 16)
    """
    informative = population * _signal(epsilon) ** 2
    needed = LEAST_BITS
    while needed < MOST_BITS and 1 << needed < informative:
        needed += 1
    return needed


def discoverable_share(population: int, epsilon: Epsilon, prefixes: int, windows: int) -> float:
    """Return the share of the fleet from which a text that nobody listed is found in time.

    Each of the `prefixes` + 1 lengths is reported by a part of the fleet, once in a window; the
    share stands out by f sqrt(n) (e^eps - 1) / (e^eps + 1) standard errors there. Above 1, no text
    is found.

    >>> round(discoverable_share(1_000_000, Epsilon.of(2), prefixes=3, windows=3), 4)
    0.0099
    """
    return FOUND_AT / (_signal(epsilon) * sqrt(windows * population / (prefixes + 1)))


def listed_share(population: int, epsilon: Epsilon, prefixes: int, windows: int) -> float:
    """Return the share from which a text that is looked for stands out among whole texts."""
    return discoverable_share(population, epsilon, prefixes, windows) * LISTED_AT / FOUND_AT


def _signal(epsilon: Epsilon) -> float:
    return tanh(epsilon.nano / 2e9)
