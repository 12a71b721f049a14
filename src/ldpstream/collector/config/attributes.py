"""The public attributes of a stream's devices: its [stream.attributes] table."""

from __future__ import annotations

from ldpstream.collector.config.table import Table
from ldpstream.protocol.attributes import Attribute, Attributes
from ldpstream.protocol.terms import Selection

LEAST_GROUP = 500
"""Devices heard in a window with which a group is shown by itself."""


def read_attributes(table: Table, selection: Selection) -> Attributes | None:
    """Read the attributes, each a list of values; None if there are none.

    Only with slots does a report say no more of its device than these.
    """
    if not table.values:
        return None
    if selection is not Selection.SLOTS:
        fix = 'set selection = "slots", or leave attributes out'
        table.refuse(None, f"attributes need slots, and selection is {selection}", fix)
    found = Attributes(tuple(Attribute(name, tuple(table.strings(name))) for name in table))
    if found.fault is not None:
        table.refuse(None, found.fault, "see docs/breakdowns.md")
    return found
