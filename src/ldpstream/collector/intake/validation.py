"""Validation of records without the store: MAC, content, and who was asked."""

from __future__ import annotations

import numpy as np

from ldpstream.arrays import Flags
from ldpstream.collector.credentials.device_keys import DeviceKeys, Signers
from ldpstream.collector.reports.records import Records
from ldpstream.collector.reports.verdicts import Verdict, Verdicts, all_of
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.rounds.selection import RosterSelection, Selection, SlotSelection
from ldpstream.errors import MalformedReport, Problem

_FAULTS = {
    Problem.REPORT_VERSION: Verdict.VERSION,
    Problem.REPORT_RANGE: Verdict.RANGE,
}


def validate(
    records: Records, asking: OpenRound, keys: DeviceKeys, selection: Selection
) -> Verdicts:
    """Return ACCEPTED for each record, or what is wrong with it.

    The MAC is checked first: nothing else is said of a record that nobody signed. Whether a device
    has reported before is for the store to say.
    """
    verdicts = all_of(Verdict.ACCEPTED, len(records))
    signers = Signers(keys.at_level(asking.terms.level), records.devices)
    signed = signers.authentic(asking.prefix, records.macs, records.reports)
    if not signed.all():
        unsigned = np.flatnonzero(~signed)
        verdicts[unsigned] = Verdict.MAC
        outdated = _of_release_1(records.where(~signed), keys, asking.prefix_1)
        verdicts[unsigned[outdated]] = Verdict.DEVICE_VERSION
    _check_content(records, asking, verdicts)
    asked = _asked(records, signers, asking, selection)
    if asked is not None:
        verdicts[(verdicts == Verdict.ACCEPTED) & ~asked] = Verdict.NOT_ASKED
    return verdicts


def _of_release_1(records: Records, keys: DeviceKeys, prefix: bytes) -> Flags:
    """Which records devices of release 0.1.0 have signed."""
    signers = Signers(keys.of_release_1, records.devices)
    return signers.authentic(prefix, records.macs, records.reports)


def _asked(
    records: Records, signers: Signers, asking: OpenRound, selection: Selection
) -> Flags | None:
    """Which records are of devices that the round asks, or whose slot it is; None: of all."""
    if isinstance(selection, SlotSelection):
        return signers.are_due(asking.terms.window, asking.stored.t)
    if not isinstance(selection, RosterSelection):
        return None
    numbers, mask = selection.numbers_of(records.devices), asking.asked_mask
    known = (numbers >= 0) & (numbers < len(mask))
    return known & mask[np.where(known, numbers, 0)] if len(mask) else known


def _check_content(records: Records, asking: OpenRound, verdicts: Verdicts) -> None:
    """Decode all reports at once; if that fails, decode them one by one to find the bad ones."""
    good = verdicts == Verdict.ACCEPTED
    reports = records.reports if good.all() else records.reports[good]
    try:
        asking.collector.decode_table(reports)
    except MalformedReport:
        device = asking.collector.device
        for row in np.flatnonzero(good).tolist():
            try:
                device.decode(records.reports[row].tobytes())
            except MalformedReport as fault:
                verdicts[row] = _FAULTS[fault.problem]
