"""Planted bugs of wallets: limits, successors and levels that do not add up."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from unittest.mock import patch

from ldpstream.audit import wallet_drills
from ldpstream.audit.planted.bug import Bug
from ldpstream.device import wallet
from ldpstream.device.file_transaction import FileTransaction
from ldpstream.device.memory import LedgerContent, StoredEnrolment, StoredPromise
from ldpstream.device.wallet import Wallet
from ldpstream.privacy.ledger import Ledger
from ldpstream.protocol.terms import Terms


def _counts_one_stream() -> AbstractContextManager[object]:
    honest = LedgerContent.limit_ledger

    def limit_ledger(self: LedgerContent, asking: StoredEnrolment | None = None) -> Ledger | None:
        own = tuple(one for one in self.entries if asking is None or asking.id in one.scope)
        return honest(replace(self, entries=own), asking)

    return patch.object(LedgerContent, "limit_ledger", limit_ledger)


def _forgets_the_old_limit() -> AbstractContextManager[object]:
    return patch.object(wallet, "_implies", lambda new, old: True)


def _starts_anew() -> AbstractContextManager[object]:
    honest = LedgerContent.ledger

    def ledger(
        self: LedgerContent, enrolment: StoredEnrolment, terms: Terms | None = None
    ) -> Ledger:
        is_new = terms is not None and terms is not enrolment.terms
        return Ledger((terms.promise,)) if is_new and terms else honest(self, enrolment, terms)

    return patch.object(LedgerContent, "ledger", ledger)


def _drops_the_old_promise() -> AbstractContextManager[object]:
    def end(
        self: Wallet, change: FileTransaction, enrolment: StoredEnrolment, *, leaves: bool = False
    ) -> StoredPromise | None:
        return None

    return patch.object(Wallet, "end", end)


def _bequeaths_once() -> AbstractContextManager[object]:
    """Only the next enrolment inherits what was spent in a stream that was left."""
    honest = FileTransaction.leave

    def leave(
        self: FileTransaction, enrolment: StoredEnrolment, ended: StoredPromise | None
    ) -> None:
        honest(self, enrolment, ended)
        for table in ("ledger", "promises", "forgotten"):
            self._execute(f"UPDATE {table} SET last_id = first_id WHERE first_id > 1")  # nosec B608 # noqa: S608

    return patch.object(FileTransaction, "leave", leave)


WALLETS = (
    Bug(
        "a limit that counts one stream",
        "each stream keeps to the limit by itself: two streams spend it twice",
        on_device=_counts_one_stream,
        drill=wallet_drills.two_streams_under_a_limit,
    ),
    Bug(
        "a looser limit at once",
        "a limit that was loosened does not bind any more, though its span has not passed",
        on_device=_forgets_the_old_limit,
        drill=wallet_drills.limit_that_is_loosened,
    ),
    Bug(
        "a successor that starts anew",
        "new terms do not count what was spent under those of before",
        on_device=_starts_anew,
        drill=wallet_drills.successor_with_a_longer_window,
    ),
    Bug(
        "a level that is left behind",
        "a person who moves to a looser level has it at once: the stricter promise is dropped",
        on_device=_drops_the_old_promise,
        drill=wallet_drills.careful_person_becomes_less_so,
    ),
    Bug(
        "debits with one heir",
        "what was spent in a stream that was left counts for the next enrolment only: joining"
        " another stream first gives the left one all of epsilon again",
        on_device=_bequeaths_once,
        drill=wallet_drills.left_behind_a_decoy,
    ),
)
