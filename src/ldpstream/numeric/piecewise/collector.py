from __future__ import annotations

from ldpstream.numeric.collector_half import NumericCollector


class Collector(NumericCollector):
    """A collector that averages outputs.

    >>> from ldpstream.numeric import Numeric
    >>> from ldpstream.privacy.epsilon import Epsilon
    >>> collector = Numeric.PIECEWISE.collector(11, Epsilon.of(1))
    >>> first, last = bytes([1, 0]), bytes([1, collector.device.outputs - 1])
    >>> collector.estimate(collector.support(collector.decode([first, last]))).tolist()
    [0.5]
    """
