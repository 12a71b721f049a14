"""The public attributes of a stream's devices: its [stream.attributes] table."""

from __future__ import annotations

from ldpstream.collector.config.table import ConfigTable
from ldpstream.protocol.attributes import Attribute, Attributes
from ldpstream.protocol.terms import SelectionMethod

LEAST_GROUP = 500
"""Devices heard in a window with which a group is shown by itself."""

MOST_COUNTS = 1 << 20
"""Counts of one round, eight bytes each, which the store keeps."""
MOST_FIGURES = 1 << 14
"""Figures of all groups. Each is followed by a filter, whose state is saved with every release."""


def read_attributes(
    table: ConfigTable, selection: SelectionMethod, values: int
) -> Attributes | None:
    """Read the attributes, each a list of values; None if there are none.

    Only with slots does a report say no more of its device than these. A device holds one of so
    many `values`, which are counted for each combination and may be released for each group.
    """
    if not table.values:
        return None
    if selection is not SelectionMethod.SLOTS:
        fix = 'set selection = "slots", or leave attributes out'
        table.refuse(None, f"attributes need slots, and selection is {selection}", fix)
    found = Attributes(tuple(Attribute(name, tuple(table.strings(name))) for name in table))
    if found.fault is not None:
        table.refuse(None, found.fault, "see docs/breakdowns.md")
    for number, parts, most in (
        (found.combinations, "combinations", MOST_COUNTS),
        (len(found.groups), "groups", MOST_FIGURES),
    ):
        if number * values > most:
            what = f"{number} {parts} of {values} values each are more than {most:,} numbers"
            table.refuse(None, what, "leave out attributes, or values of them")
    return found
