"""The configuration file of a collector, which is validated as it is read, and then immutable."""

from ldpstream.collector.config.file import Config, Limits, load, parse
from ldpstream.collector.config.stream import StreamConfig, Suspicion
from ldpstream.collector.config.table import ConfigTable
from ldpstream.protocol.terms import SelectionMethod

__all__ = [
    "Config",
    "ConfigTable",
    "Limits",
    "SelectionMethod",
    "StreamConfig",
    "Suspicion",
    "load",
    "parse",
]
