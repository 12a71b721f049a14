from __future__ import annotations

from ldpstream.arrays import Floats
from ldpstream.numeric.band_device import BandDevice
from ldpstream.numeric.collector_half import NumericCollector
from ldpstream.numeric.square_wave.reconstruction import reconstruct
from ldpstream.oracles.collector_half import Pure


class Collector(NumericCollector):
    """A collector that estimates how many bands cover each output, and from that the distribution.

    The *cover* c(y) is the share of users in whose band output y lies. A report is y with
    probability p if it does and q if not, just as a pure oracle's report supports a label. So
    (counts/n - q) / (p - q) is unbiased, output by output, with a known variance. The
    distribution over levels from `reconstruct`, in contrast, is biased and has no known variance.

    >>> import numpy as np
    >>> from ldpstream.numeric import Numeric
    >>> from ldpstream.privacy.epsilon import Epsilon
    >>> everyone_at_0 = np.array([1000, 0, 0, 0])
    >>> lab = Numeric.SQUARE_WAVE.lab(4, Epsilon.of(3))
    >>> collector = Numeric.SQUARE_WAVE.collector(4, Epsilon.of(3))
    >>> support = lab.sample_support(everyone_at_0, np.random.default_rng(1))
    >>> collector.cover.estimate(support).round(1).tolist()
    [1.0, 0.0, 0.0, -0.0]
    """

    device: BandDevice

    def __init__(self, device: BandDevice) -> None:
        super().__init__(device)
        self.cover = Pure(device.p, device.q)
        """The estimator of covers and their variance."""

    def reconstruct(self, cover: Floats, *, smooth: bool = True) -> Floats:
        """Return the distribution over levels that best explains a cover."""
        return reconstruct(cover, self.device, smooth=smooth)
