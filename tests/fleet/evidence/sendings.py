"""What was sent, and what may have become of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.fleet.evidence.ledgers import Account
from tests.fleet.evidence.wire import ACKNOWLEDGED, SENT, Event

LEAST_SERVER_FAULT = 500
"""From this status on nobody knows what was done."""

Reports = dict[tuple[str, str], bytes]
"""By device and round."""


@dataclass(frozen=True)
class Sendings:
    """What was sent, as far as it can be known who received it."""

    sent: dict[tuple[str, str], set[bytes]]
    acknowledged: Reports
    possible: Reports
    """Those that may be in a tally: all but the ones that were refused whenever they were sent."""

    @classmethod
    def of(cls, events: Iterable[Event], ends_ms: Sequence[int]) -> Sendings:
        """`ends_ms`: when processes of the collector ended."""
        by_report: defaultdict[tuple[str, str], list[Event]] = defaultdict(list)
        for event in events:
            by_report[event.device, event.round].append(event)
        sent = {key: {one.report for one in found} for key, found in by_report.items()}
        acknowledged = {
            key: found[0].report
            for key, found in by_report.items()
            if any(one.status == ACKNOWLEDGED for one in found)
        }
        uncertain = {
            key: found[0].report
            for key, found in by_report.items()
            if _may_have_arrived(found, ends_ms)
        }
        return cls(sent, acknowledged, uncertain | acknowledged)

    def undebited(self, accounts: Iterable[Account]) -> int:
        """Reports that left without a debit, or in other bytes than the ledger has."""
        entered = {
            (account.device, entry.round): entry.report
            for account in accounts
            for entry in account.entries
        }
        return sum(reports != {entered.get(key)} for key, reports in self.sent.items())


def _may_have_arrived(events: Sequence[Event], ends_ms: Sequence[int]) -> bool:
    """Whether some sending of this report may have been counted though its answer does not say so.

    A device sends a report again only after the answer to it, or none, so each sending is followed
    by its answer. A refusal says that it was not counted; but not if a collector ended while the
    report was under way: the transport may have sent it again, to the next one.
    """
    for sending, answer in pairwise([*events, None]):
        if sending is None or sending.status != SENT:
            continue
        if answer is None or answer.status == SENT or answer.status >= LEAST_SERVER_FAULT:
            return True
        if any(sending.at_ms <= end <= answer.at_ms for end in ends_ms):
            return True
    return False
