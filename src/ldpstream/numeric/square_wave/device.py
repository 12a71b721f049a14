from __future__ import annotations

from decimal import Context, Decimal, localcontext

from ldpstream.numeric.band_device import BandDevice
from ldpstream.privacy.epsilon import NANO, Epsilon


class Device(BandDevice):
    """A device whose band has the width at which a report is most informative about the value.

    Odds a : b within e^epsilon. Report: a number below 2 levels. Li et al., "Estimating numerical
    distributions under local differential privacy", SIGMOD 2020, discretised before it is
    randomised. `width` may be given: all reports of a stream must have the same one, whatever
    their epsilon, to be comparable.

    >>> Device(levels=256, epsilon=Epsilon.of(1)).width
    131
    """

    def __init__(self, levels: int, epsilon: Epsilon, width: int | None = None) -> None:
        super().__init__(levels, epsilon, width or best_width(levels, epsilon))


def best_width(levels: int, epsilon: Epsilon) -> int:
    """Return 2 floor(b levels) + 1, where b maximises mutual information (Li et al., section 5.3).

    b = (E e^E - e^E + 1) / (2 e^E (e^E - 1 - E)), from 1/2 at epsilon 0 down to 0. It is computed
    in decimals, which are the same on every machine; at 1e-9 it loses 18 of the 60 digits.
    """
    with localcontext(Context(prec=60)):
        e = Decimal(epsilon.nano) / NANO
        power = e.exp()
        half = (e * power - power + 1) / (2 * power * (power - 1 - e))
        return 2 * int(half * levels) + 1
