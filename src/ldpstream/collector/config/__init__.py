"""The configuration file of a collector, which is validated as it is read, and then immutable."""

from ldpstream.collector.config.file import Config, Limits, load, parse
from ldpstream.collector.config.stream import StreamConfig, Suspicion
from ldpstream.collector.config.table import Table
from ldpstream.protocol.terms import Selection

__all__ = ["Config", "Limits", "Selection", "StreamConfig", "Suspicion", "Table", "load", "parse"]
