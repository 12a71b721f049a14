from __future__ import annotations

from ldpstream.numeric.collector_half import NumericCollector


class Collector(NumericCollector):
    """A collector that counts zeros and ones.

    One bit reveals nothing of the spread of values: half the users at either end, or all in the
    middle, give the same reports.

    >>> from ldpstream.numeric import Numeric
    >>> from ldpstream.oracles.collector_half import Support
    >>> from ldpstream.privacy.epsilon import Epsilon
    >>> collector = Numeric.DUCHI.collector(11, Epsilon.of(1))
    >>> half = collector.support(collector.decode([bytes([1, 0]), bytes([1, 1])]))
    >>> collector.estimate(half).tolist()
    [0.5]
    """
