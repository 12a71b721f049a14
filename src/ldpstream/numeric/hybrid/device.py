from __future__ import annotations

from fractions import Fraction

from ldpstream.numeric.device_half import NumericDevice
from ldpstream.numeric.duchi.device import Device as Duchi
from ldpstream.numeric.piecewise.device import Device as Piecewise
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.randomness import Source, either


class Device(NumericDevice):
    """Use the piecewise mechanism with probability alpha, else Duchi's bit, with all of epsilon.

    The coin does not depend on the value and the report reveals it: outputs 0 and 1 are Duchi's,
    the others those of the band. Piecewise has the worst variance at the ends of the range,
    Duchi in the middle, and at alpha = 1 / (1 - bend of piecewise) the two bends cancel: the
    variance is the same for every value. Where that gains nothing (epsilon up to 0.61) alpha is 0.
    Wang et al., ICDE 2019, III-C: alpha = 1 - e^(-epsilon/2), by the same argument for their width.

    >>> device = Device(levels=1025, epsilon=Epsilon.of(2))
    >>> f"{float(device.alpha):.2f}", f"{float(device.worst_noise):.4f}", device.bend
    ('0.70', '0.2458', Fraction(0, 1))
    """

    def __init__(self, levels: int, epsilon: Epsilon) -> None:
        self.bit = Duchi(levels, epsilon)
        self.band = Piecewise(levels, epsilon)
        super().__init__(levels, epsilon, self.bit.scales + self.band.scales)
        self.worst_ratio = max(self.bit.worst_ratio, self.band.worst_ratio)
        level = 1 / (1 - self.band.bend)
        self.alpha = min(Fraction(0), level, key=lambda alpha: self._worst(alpha))
        """Pr[piecewise]."""
        self.base, self.bend = self._mix(self.alpha)

    def _mix(self, alpha: Fraction) -> tuple[Fraction, Fraction]:
        return (
            alpha * self.band.base + (1 - alpha) * self.bit.base,
            alpha * self.band.bend + (1 - alpha) * self.bit.bend,
        )

    def _worst(self, alpha: Fraction) -> Fraction:
        base, bend = self._mix(alpha)
        return base + max(bend, Fraction(0)) / 4

    def probability(self, output: int, level: int) -> Fraction:
        if output < self.bit.outputs:
            return (1 - self.alpha) * self.bit.probability(output, level)
        return self.alpha * self.band.probability(output - self.bit.outputs, level)

    def _perturb(self, value: int, source: Source) -> int:
        # Both are always drawn: the draws must not depend on the coin.
        by_band = source.coin(self.alpha.numerator, self.alpha.denominator)
        bit = self.bit.perturb(value, source)
        near = self.band.perturb(value, source)
        return either(by_band, self.bit.outputs + near, bit)
