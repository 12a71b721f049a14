"""A transaction on a device's file: everything that can be changed in it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import replace

from ldpstream.device.memory import (
    COLUMNS,
    LAST_ID,
    LEFT,
    LIMIT,
    Forgotten,
    LedgerContent,
    LedgerEntry,
    RefusalCount,
    Scope,
    StoredEnrolment,
    StoredPromise,
    lineage,
    policy_text,
)
from ldpstream.device.schema import new_secret

_PLACES = ", ".join("?" * len(COLUMNS.split(", ")))


class FileTransaction:
    """An exclusive transaction on the file; it is durable when its block ends without a fault."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        memory: LedgerContent,
        stamp: str,
        vouched_for: bool,
        read: Callable[[sqlite3.Connection], tuple[LedgerContent, str]],
    ) -> None:
        self._connection = connection
        self._read = read
        self.memory = memory
        """The content of the file, as it was when the transaction began or was last `reread`."""
        self.stamp = stamp
        self.vouched_for = vouched_for
        """Whether this is the file as it was last written, and not an older copy."""
        self.accounted_for = False
        """Whether an unknown past was entered, so that all is known again."""
        self.made = False

    def reread(self) -> None:
        """Read what the transaction has made of the file; own time stays as it was resumed."""
        if self.made:
            self.memory = replace(self._read(self._connection)[0], own=self.memory.own)

    # --- debits -----------------------------------------------------------------------------------

    def enter(self, entry: LedgerEntry) -> None:
        """Enter a debit with its report."""
        # A newer unknown past replaces an older one; a second report of a round is a fault.
        verb = "INSERT OR REPLACE" if entry.report is None else "INSERT"
        values = tuple(getattr(entry, name) for name in COLUMNS.split(", "))
        self._execute(f"{verb} INTO ledger ({COLUMNS}) VALUES ({_PLACES})", values)

    def forget(self, own_ms: int) -> None:
        """Delete the debits that no promise depends on any more, and note the newest of them."""
        for scope in {entry.scope for entry in self.memory.entries}:
            up_to_ms = own_ms - self.memory.kept_for(scope)
            old = [one.own_ms for one in self.memory.entries if one.scope == scope]
            if old := [at for at in old if at <= up_to_ms]:
                self._execute(
                    "DELETE FROM ledger WHERE first_id = ? AND last_id = ? AND own_ms <= ?",
                    (scope.first_id, scope.last_id, up_to_ms),
                )
                self.forgotten(max(old), scope)

    def forgotten(self, own_ms: int, scope: Scope) -> None:
        """Store that debits of this own time are not known, or not any more."""
        self._execute(
            "INSERT INTO forgotten VALUES (?, ?, ?) ON CONFLICT DO UPDATE"
            " SET own_ms = max(own_ms, excluded.own_ms)",
            (own_ms, scope.first_id, scope.last_id),
        )

    def drop_reports(self, enrolment: StoredEnrolment, but: range = range(0)) -> None:
        """Delete a stream's stored reports, but for those of some timestamps; keep their debits."""
        self._execute(
            "UPDATE ledger SET report = NULL WHERE first_id = ? AND NOT (t >= ? AND t < ?)",
            (enrolment.id, but.start, but.stop),
        )

    # --- promises ---------------------------------------------------------------------------------

    def end(self, promise: StoredPromise) -> None:
        """Store a promise that has ended, and binds until its span has passed."""
        self._execute(
            "INSERT INTO promises VALUES (?, ?, ?, ?, ?, ?)",
            (
                promise.epsilon_nano,
                promise.span,
                promise.since,
                promise.until,
                promise.scope.first_id,
                promise.scope.last_id,
            ),
        )

    def prolong(self, promise: StoredPromise) -> None:
        """Store a promise that binds until its span has passed; extend it if it still binds."""
        for one in self.memory.ended:
            if replace(one, since=0, until=0) != replace(promise, since=0, until=0):
                continue
            if one.binds(promise.since):
                promise = replace(promise, since=min(one.since, promise.since))
                self._execute(
                    "DELETE FROM promises WHERE epsilon_nano = ? AND span_ms = ? AND until_ms = ?"
                    " AND first_id = ? AND last_id = ?",
                    (one.epsilon_nano, one.span, one.until, one.scope.first_id, one.scope.last_id),
                )
        self.end(promise)

    def set_limit(self, limit: StoredPromise | None) -> None:
        """Put another limit in force, or none; `end` stores the one of before."""
        self._execute("DELETE FROM promises WHERE until_ms IS NULL")
        if limit is not None:
            self.end(replace(limit, until=None, scope=LIMIT))

    def forget_promises(self, own_ms: int) -> None:
        """Delete the promises that do not bind any more at this own time."""
        self._connection.execute("DELETE FROM promises WHERE until_ms <= ?", (own_ms,))

    # --- enrolments -------------------------------------------------------------------------------

    def enrol(self, enrolment: StoredEnrolment) -> None:
        """Store an enrolment, or what has changed in it.

        From then on the past is known: where it is not, a forgotten moment says so.
        """
        self._execute("UPDATE device SET past_known = 1")
        following = enrolment.successor
        self._execute(
            "INSERT OR REPLACE INTO enrolment"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                enrolment.id,
                enrolment.url,
                enrolment.terms.canonical,
                enrolment.terms.level,
                None if following is None else following.canonical,
                json.dumps(enrolment.renamed),
                enrolment.secret,
                enrolment.rejoins,
                enrolment.number,
                enrolment.key,
                enrolment.slot_key,
                policy_text(enrolment.policy),
                enrolment.reserve_nano,
                enrolment.reserved_ms,
                enrolment.at_ms,
                None if enrolment.other_keys is None else b"".join(enrolment.other_keys),
            ),
        )
        held = {pin for terms in enrolment.all_terms for pin in lineage(terms)}
        for pin in held:
            place = enrolment.id
            self._execute("INSERT OR IGNORE INTO pins VALUES (?, ?, ?)", (pin, place, place))

    def leave(self, enrolment: StoredEnrolment, ended: StoredPromise | None) -> None:
        """Forget the enrolment, its secrets and reports; keep the debits and the promise.

        They count for all enrolments that are made later. The past is known from then on: where it
        is not, a forgotten moment says so.
        """
        place, future_enrolments = enrolment.id, self.memory.future_enrolments
        self._execute("DELETE FROM enrolment WHERE id = ?", (place,))
        # Refusals may name the collector.
        self._execute("DELETE FROM refusals WHERE enrolment IN (0, ?)", (place,))
        self._execute(
            "UPDATE ledger SET t = 0, round = ?, report = NULL, at_ms = 0, first_id = ?,"
            " last_id = ? WHERE first_id = ? AND last_id = ?",
            (LEFT, future_enrolments.first_id, LAST_ID, place, place),
        )
        self._execute(
            "UPDATE promises SET first_id = ?, last_id = ? WHERE first_id = ? AND last_id = ?",
            (future_enrolments.first_id, LAST_ID, place, place),
        )
        self._bequeath(enrolment)
        self._bequeath_pins(place, future_enrolments.first_id)
        self._execute(
            "UPDATE device SET secret = ?, rejoins = rejoins + 1, past_known = 1", (new_secret(),)
        )
        if ended is not None:
            self.end(replace(ended, scope=future_enrolments))

    def _bequeath(self, enrolment: StoredEnrolment) -> None:
        """Let forgotten moments of a stream count for later ones; drop those that add nothing."""
        newest: dict[Scope, int] = {}
        for one in self.memory.forgotten:
            scope = self.memory.future_enrolments if one.scope == enrolment.scope else one.scope
            newest[scope] = max(one.own_ms, newest.get(scope, 0))
        ids = [one.id for one in self.memory.enrolments if one != enrolment]
        kept: list[Forgotten] = []
        # The newest come first, and of the same moment the widest: only what is kept covers others.
        for scope in sorted(newest, key=lambda one: (-newest[one], one.first_id)):
            moment = Forgotten(newest[scope], scope)
            if not any(_covers(other, moment, ids) for other in kept):
                kept.append(moment)
        self._execute("DELETE FROM forgotten")
        for one in kept:
            self.forgotten(one.own_ms, one.scope)

    def _bequeath_pins(self, place: int, heir: int) -> None:
        """Let later enrolments have the terms of a stream that was left: they have its debits too.

        Those that were made before have not, so they may not have the terms.
        """
        self._execute(
            "DELETE FROM pins WHERE last_id = ? AND pin IN"
            " (SELECT pin FROM pins WHERE first_id = ? AND last_id = ?)",
            (LAST_ID, place, place),
        )
        self._execute(
            "UPDATE pins SET first_id = ?, last_id = ? WHERE first_id = ? AND last_id = ?",
            (heir, LAST_ID, place, place),
        )
        self._execute(
            "DELETE FROM pins WHERE last_id = ? AND first_id <="
            " (SELECT coalesce(min(id), ?) FROM enrolment)",
            (LAST_ID, LAST_ID),
        )

    # --- the rest ---------------------------------------------------------------------------------

    def count(self, refusals: Iterable[RefusalCount]) -> None:
        """Add to the counts of refusals."""
        for one in refusals:
            self._execute(
                "INSERT INTO refusals VALUES (?, ?, ?, ?, ?) ON CONFLICT (enrolment, code)"
                " DO UPDATE SET times = times + excluded.times, last_ms = excluded.last_ms,"
                " detail = excluded.detail",
                (one.enrolment, one.code, one.times, one.last_ms, one.detail),
            )

    def mark_time(self) -> None:
        """Commit own time, even if nothing else has changed."""
        self.made = True

    def _execute(self, statement: str, values: tuple[object, ...] = ()) -> None:
        self.made = True
        self._connection.execute(statement, values)


def _covers(newer: Forgotten, older: Forgotten, ids: list[int]) -> bool:
    """Return whether a moment makes an older one needless, for these enrolments and later ones."""
    return (
        older.scope.last_id == newer.scope.last_id == LAST_ID
        and older.own_ms <= newer.own_ms
        and not any(older.scope.first_id <= one < newer.scope.first_id for one in ids)
    )
