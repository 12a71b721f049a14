from __future__ import annotations

from ldpstream.numeric.collector_half import NumericCollector


class Collector(NumericCollector):
    """A collector of square wave reports: it reads a mean; `readings.py` reads a distribution."""
