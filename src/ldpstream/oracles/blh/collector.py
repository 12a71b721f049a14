from __future__ import annotations

from ldpstream.oracles.local_hash_collector import LocalHashCollector


class Collector(LocalHashCollector):
    """Counts, for each label, the reports in whose bucket it falls.

    >>> from ldpstream.oracles import Oracle
    >>> from ldpstream.privacy.epsilon import Epsilon
    >>> from ldpstream.privacy.randomness import SystemSource
    >>> device = Oracle.BLH.device(3, Epsilon.of(1))
    >>> report = device.perturb(1, SystemSource())
    >>> collector = Oracle.BLH.collector(3, Epsilon.of(1))
    >>> counts = collector.support(collector.decode([device.encode(report)])).counts
    >>> counts.tolist() == [device.supports(report, label) for label in range(3)]
    True
    """
