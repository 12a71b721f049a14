"""Validation of records without the store: MAC, content, and who was asked."""

from __future__ import annotations

import numpy as np

from ldpstream.arrays import Flags
from ldpstream.collector.credentials.deny_list import NOBODY, DenyList
from ldpstream.collector.credentials.device_keys import KeyStanding, Signers, StreamKeys
from ldpstream.collector.reports.records import Records
from ldpstream.collector.reports.verdicts import JudgedRecords, Verdict, Verdicts
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.rounds.selection import RosterSelection, Selection, SlotSelection
from ldpstream.errors import MalformedReport, Problem
from ldpstream.vocabulary import Vocabulary

_FAULTS = {
    Problem.REPORT_VERSION: Verdict.VERSION,
    Problem.REPORT_RANGE: Verdict.RANGE,
}


_OF_STANDING = np.empty(len(KeyStanding), np.uint8)
_OF_STANDING[KeyStanding.CURRENT] = _OF_STANDING[KeyStanding.EARLIER] = Verdict.ACCEPTED
_OF_STANDING[KeyStanding.ENDED] = Verdict.KEY_ENDED
_OF_STANDING[KeyStanding.RELEASE_1] = Verdict.DEVICE_VERSION
_OF_STANDING[KeyStanding.NONE] = Verdict.MAC
"""The verdict on a record by the key that it was signed with, before more is known of it."""


def validate(
    records: Records,
    asking: OpenRound,
    keys: StreamKeys,
    selection: Selection,
    denied: DenyList = NOBODY,
) -> JudgedRecords:
    """Return ACCEPTED for each record or what is wrong with it, and who must renew its key.

    The MAC is checked first: nothing else is said of a record that nobody signed. Whether a device
    has reported before is for the store to say.
    """
    signed = keys.at_level(asking.terms.level).signatures(
        records.devices, records.macs, records.reports, asking.prefix, asking.prefix_1
    )
    verdicts = _OF_STANDING[signed.standings]
    verdicts[signed.good & denied.contains(records.devices)] = Verdict.DENIED
    _check_content(records, asking, verdicts)
    asked = _asked(records, signed.in_turn, asking, selection)
    if asked is not None:
        verdicts[(verdicts == Verdict.ACCEPTED) & ~asked] = Verdict.NOT_ASKED
    return JudgedRecords(verdicts, signed.earlier & keys.ring.renews)


def _asked(
    records: Records, signers: Signers, asking: OpenRound, selection: Selection
) -> Flags | None:
    """Return which records come from devices that are asked or have their slot, or None if all do.

    A group of a vocabulary is recomputed too: no fake may choose the one in which it weighs most.
    """
    if isinstance(selection, SlotSelection):
        due = signers.are_due(asking.terms.window, asking.stored.t)
        if not isinstance(asking.terms.values, Vocabulary):
            return due
        return due & signers.are_of(asking.terms.tags, records.reports[:, -1])
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
