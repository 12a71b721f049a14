from __future__ import annotations

from ldpstream.oracles.bitmap_collector import BitmapCollector


class Collector(BitmapCollector):
    """A collector that counts bits; SUE and OUE have the same format.

    >>> from ldpstream.oracles import Oracle
    >>> from ldpstream.privacy.epsilon import Epsilon
    >>> collector = Oracle.OUE.collector(3, Epsilon.of(1))
    >>> reports = collector.decode([bytes([1, 0b101]), bytes([1, 0b100])])
    >>> collector.support(reports).counts.tolist()
    [1, 0, 2]
    """
