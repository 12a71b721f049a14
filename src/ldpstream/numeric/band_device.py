"""The common device half of randomisers whose likely outputs are a band around the value."""

from __future__ import annotations

from fractions import Fraction

from ldpstream.numeric.device_half import NumericDevice, Scale
from ldpstream.privacy.epsilon import Epsilon, Odds
from ldpstream.privacy.randomness import Source, either


class BandDevice(NumericDevice):
    """Report an output in the band k .. k+width-1 of level k, with odds a : b to any other output.

    Every level has a band of the same `width` among the steps + width outputs, so the total weight
    is the same for all of them and any two likelihoods of an output are a : b, b : a or equal. The
    band moves by one output per level, so the mean output is exactly linear in the level.
    """

    def __init__(self, levels: int, epsilon: Epsilon, width: int) -> None:
        odds = Odds.within(epsilon)
        shape = Band(levels - 1, width, odds)
        super().__init__(levels, epsilon, (shape.scale,))
        self.width = width
        self._inside = width * odds.favour
        self._total = shape.total
        self.worst_ratio = odds.ratio
        self.p = Fraction(odds.favour, self._total)
        """Pr[a given output of the band]."""
        self.q = Fraction(odds.against, self._total)
        """Pr[a given other output]."""
        self.base, self.bend = shape.base, shape.bend

    def probability(self, output: int, level: int) -> Fraction:
        return self.p if level <= output < level + self.width else self.q

    def _perturb(self, value: int, source: Source) -> int:
        # All three are always drawn: the draws must not depend on the value.
        in_band = source.coin(self._inside, self._total)
        near = source.below(self.width)
        far = source.below(self.steps)
        return either(in_band, value + near, far + self.width * (far >= value))


class Band:
    """The moments of a band of `width` outputs at the given odds.

    With M = steps + width outputs and weights a in the band, b outside, the mean output of level k
    is (b (0 + ... + M-1) + (a-b)(k + ... + k+width-1)) / total, and the mean square likewise.
    """

    def __init__(self, steps: int, width: int, odds: Odds) -> None:
        outputs = steps + width
        more = odds.favour - odds.against
        self.total = width * odds.favour + steps * odds.against

        def mean(sum_below: int, sum_in_band: int) -> Fraction:
            return Fraction(odds.against * sum_below + more * sum_in_band, self.total)

        zero = mean(_sum(outputs), _sum(width))
        square = mean(_sum_of_squares(outputs), _sum_of_squares(width))
        unit = Fraction(more * width * steps, self.total)
        self.scale = Scale(outputs, zero, unit)
        self.base = (square - zero**2) / unit**2
        self.bend = 1 - steps / unit


def _sum(number: int) -> int:
    """Return 0 + 1 + ... + number-1."""
    return number * (number - 1) // 2


def _sum_of_squares(number: int) -> int:
    return number * (number - 1) * (2 * number - 1) // 6
