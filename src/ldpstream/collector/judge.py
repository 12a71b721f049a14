"""Which records of a round may be counted, as far as they tell by themselves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ldpstream.collector.announcement import OpenRound
from ldpstream.collector.keys import DeviceKeys, authentic
from ldpstream.collector.records import Records
from ldpstream.collector.selection import RosterSelection, Selection
from ldpstream.collector.verdicts import Verdict, Verdicts, all_of
from ldpstream.errors import MalformedReport, Problem

_FAULTS = {
    Problem.REPORT_VERSION: Verdict.VERSION,
    Problem.REPORT_RANGE: Verdict.RANGE,
}


def judge(records: Records, asking: OpenRound, keys: DeviceKeys, selection: Selection) -> Verdicts:
    """ACCEPTED, or what is wrong; whether a device has reported before is for the store to say.

    The code comes first: of what nobody signed, nothing else is said.
    """
    verdicts = all_of(Verdict.ACCEPTED, len(records))
    signed = _signed(records, keys, asking.prefix)
    if not signed.all():
        unsigned = np.flatnonzero(~signed)
        verdicts[unsigned] = Verdict.MAC
        outdated = _signed(records.where(~signed), keys, asking.prefix_1)
        verdicts[unsigned[outdated]] = Verdict.DEVICE_VERSION
    _check_content(records, asking, verdicts)
    if isinstance(selection, RosterSelection):
        numbers = selection.numbers_of(records.devices)
        mask = asking.asked_mask
        known = (numbers >= 0) & (numbers < len(mask))
        asked = known & mask[np.where(known, numbers, 0)] if len(mask) else known
        verdicts[(verdicts == Verdict.ACCEPTED) & ~asked] = Verdict.NOT_ASKED
    return verdicts


def _signed(records: Records, keys: DeviceKeys, prefix: bytes) -> NDArray[np.bool_]:
    return authentic(keys, prefix, records.devices, records.macs, records.reports)


def _check_content(records: Records, asking: OpenRound, verdicts: Verdicts) -> None:
    """Decode all at once; only if something is wrong, find out which by decoding one by one."""
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
