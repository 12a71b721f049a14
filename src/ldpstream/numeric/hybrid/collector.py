from __future__ import annotations

from ldpstream.numeric.collector_half import NumericCollector


class Collector(NumericCollector):
    """A collector that reads each output on the scale of its method, and averages.

    >>> from ldpstream.numeric import Numeric
    >>> from ldpstream.privacy.epsilon import Epsilon
    >>> collector = Numeric.HYBRID.collector(11, Epsilon.of(1))
    >>> bits = collector.support(collector.decode([bytes([1, 0]), bytes([1, 1])]))
    >>> collector.estimate(bits).tolist()
    [0.5]
    """
