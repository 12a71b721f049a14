"""What administrators change, in either store: secrets, tokens, denials, settings, and a log.

Every change appends its entry to the log in the same transaction. So the number of the last entry
also tells other collectors of the store that there is something new.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ldpstream.collector.credentials.enrolment_tokens import EnrolmentToken, use_of
from ldpstream.collector.credentials.masters import Masters
from ldpstream.collector.credentials.sealing import check_of, seal, unseal
from ldpstream.collector.store.chain import Chain, ChainCheck, Damage
from ldpstream.collector.store.chain_key import CHAIN_KEY, KEYRING, LOG, MASTER, with_log
from ldpstream.collector.store.content import stored_text
from ldpstream.collector.store.statements import (
    Execute,
    Tables,
    read_property,
    write_note,
    write_property,
)
from ldpstream.errors import Mistake, Problem


@dataclass(frozen=True)
class AdminLogEntry:
    """An entry of the admin log."""

    at_ms: int
    who: str
    action: str
    details: dict[str, Any] = field(default_factory=dict)
    number: int = 0
    """From 1, without gaps; 0 before it is stored."""

    def to_json(self) -> dict[str, Any]:
        return {"number": self.number} | {k: v for k, v in vars(self).items() if k != "number"}


_COLUMNS = "name, digest, stream, made_ms, expires_ms, most_uses, uses, revoked_ms"

_WHOLE_LOG = (
    "SELECT seal, id, at_ms, who, action, details, link FROM"
    " (SELECT (SELECT value FROM property WHERE name = %s) AS seal) AS log_end"
    " LEFT JOIN admin_log ON true ORDER BY id"
)
"""All entries and the end that was sealed, at one moment."""


_LOGGED = (
    "SELECT 1 FROM property WHERE name = %s UNION ALL SELECT 1 FROM enrolment_token"
    " UNION ALL SELECT 1 FROM denied LIMIT 1"
)
"""Anything whose making was logged."""


class AdminTables:
    """The tables of administrators in one store."""

    def __init__(self, tables: Tables, chain: Chain) -> None:
        self._tables = tables
        self._chain = chain

    # The log

    def serial(self) -> int:
        """Return the number of the last entry: it grows with every change."""
        row = self._tables.read(lambda run: run("SELECT max(id) FROM admin_log").fetchone())
        return int(row[0] or 0)

    def log(self, after: int, limit: int) -> list[AdminLogEntry]:
        """Return at most `limit` entries after one, in order."""
        rows = self._tables.read(
            lambda run: run(
                "SELECT at_ms, who, action, details, id FROM admin_log WHERE id > %s"
                " ORDER BY id LIMIT %s",
                after,
                limit,
            ).fetchall()
        )
        return [
            AdminLogEntry(at_ms, who, action, json.loads(details), number)
            for at_ms, who, action, details, number in rows
        ]

    def record(self, entry: AdminLogEntry) -> None:
        """Append an entry for a change that was made elsewhere."""
        self._tables.change_alone(lambda run: self._append(run, entry))

    def check_log(self) -> ChainCheck:
        """Follow the chain of the log, and say where it first breaks."""
        return self._tables.read(lambda run: check_log(run, self._chain))

    def accept_log(self, entry: AdminLogEntry) -> None:
        """Chain the log as it is, whatever was done to it, and append that this was done."""

        def work(run: Execute) -> None:
            link, last = b"", 0
            for _, *row, _ in run(_WHOLE_LOG, LOG).fetchall():
                if row[0] is not None:
                    link, last = self._chain.log_link(link, *row), row[0]
                    run("UPDATE admin_log SET link = %s WHERE id = %s", link, last)
            write_property(run, LOG, self._chain.seal_log(last, link))
            self._append(run, entry)

        self._tables.change_alone(work)

    def _append(self, run: Execute, entry: AdminLogEntry) -> None:
        """Append an entry, before what it tells of is done in the same transaction."""
        last, link = _last(run)
        if not _is_end(run, self._chain, last, link, read_property(run, LOG)):
            what = Damage(None, "the end of the admin log was changed")
            raise Mistake(Problem.CHAIN_BROKEN, stream=LOG, what=what)
        row = (last + 1, entry.at_ms, entry.who, entry.action, stored_text(entry.details))
        link = self._chain.log_link(link, *row)
        run("INSERT INTO admin_log VALUES (%s, %s, %s, %s, %s, %s)", *row, link)
        write_property(run, LOG, self._chain.seal_log(last + 1, link))

    # Master secrets

    def masters(self, known: Iterable[bytes]) -> Masters | None:
        """Return the master secrets, if the current one is among the known; None if it is not."""
        statement = "SELECT name, value FROM property WHERE name IN (%s, %s)"  # at one moment
        stored = dict(self._tables.read(lambda run: run(statement, MASTER, KEYRING).fetchall()))
        check, sealed = stored.get(MASTER), stored.get(KEYRING)
        for master in known:
            if check in (None, check_of(master)):
                return Masters.single(master) if sealed is None else Masters.of(master, sealed)
        return None

    def replace_masters(self, old: Masters, new: Masters, entry: AdminLogEntry) -> None:
        """Store other master secrets, and seal anew what is sealed with the current one.

        Refused if the store's are not the `old` ones: another collector has changed them.
        """

        def work(run: Execute) -> None:
            self._append(run, entry)
            sealed, key = read_property(run, KEYRING), read_property(run, CHAIN_KEY)
            opened = None if key is None else unseal(old.current, CHAIN_KEY, key)
            stored = Masters.of(old.current, sealed) if sealed else Masters.single(old.current)
            if opened is None or stored != old:
                raise Mistake(Problem.UNAVAILABLE, seconds=1)
            write_property(run, CHAIN_KEY, seal(new.current, CHAIN_KEY, with_log(opened)))
            write_property(run, KEYRING, new.sealed())
            write_property(run, MASTER, check_of(new.current))

        self._tables.change_alone(work)

    # Enrolment tokens

    def tokens(self) -> list[EnrolmentToken]:
        """Return all enrolment tokens, including those that have ended."""
        statement = f"SELECT {_COLUMNS} FROM enrolment_token ORDER BY made_ms, name"  # nosec B608 # noqa: S608
        rows = self._tables.read(lambda run: run(statement).fetchall())
        return [EnrolmentToken(*row) for row in rows]

    def add_token(self, token: EnrolmentToken, entry: AdminLogEntry) -> None:
        """Add a token; its name must be new."""

        def work(run: Execute) -> None:
            self._append(run, entry)
            added = run(
                f"INSERT INTO enrolment_token ({_COLUMNS})"  # nosec B608 # noqa: S608
                " VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (name) DO NOTHING",
                *vars(token).values(),
            )
            if not added.rowcount:
                raise Mistake(Problem.TOKEN_EXISTS, name=token.name)

        self._tables.change_alone(work)

    def revoke_token(self, name: str, entry: AdminLogEntry) -> None:
        """Revoke a token: nobody can enrol with it any more."""

        def work(run: Execute) -> None:
            self._append(run, entry)
            revoked = run(
                "UPDATE enrolment_token SET revoked_ms = %s WHERE name = %s AND revoked_ms IS NULL",
                entry.at_ms,
                name,
            )
            if not revoked.rowcount:
                raise Mistake(Problem.TOKEN_UNKNOWN, given=name)

        self._tables.change_alone(work)

    def use_token(
        self, name: str, stream: str, device: bytes, now_ms: int, level: str = ""
    ) -> None:
        """Count the use of a token by a device at a level, once; refuse a token that has ended.

        The use and its count are one transaction, so that no token is ever used too often.
        """

        def work(run: Execute) -> None:
            used = run(
                "INSERT INTO token_use VALUES (%s, %s) ON CONFLICT DO NOTHING",
                name,
                use_of(stream, device, level),
            )
            counted = run(
                "UPDATE enrolment_token SET uses = uses + %s WHERE name = %s"
                " AND revoked_ms IS NULL AND (expires_ms IS NULL OR expires_ms > %s)"
                " AND (most_uses IS NULL OR uses + %s <= most_uses)",
                used.rowcount,
                name,
                now_ms,
                used.rowcount,
            )
            if not counted.rowcount:
                ((*row,),) = run(
                    f"SELECT {_COLUMNS} FROM enrolment_token WHERE name = %s",  # nosec B608 # noqa: S608
                    name,
                ).fetchall()
                what = EnrolmentToken(*row).fault(now_ms) or "is used up"
                raise Mistake(Problem.TOKEN_ENDED, name=name, what=what)

        self._tables.change(work)

    # The deny list

    def denied(self) -> dict[str, list[bytes]]:
        """Return the numbers of the devices that are denied, by stream."""
        rows = self._tables.read(
            lambda run: run(
                "SELECT stream, device FROM denied ORDER BY stream, denied_ms, device"
            ).fetchall()
        )
        found: dict[str, list[bytes]] = {}
        for stream, device in rows:
            found.setdefault(stream, []).append(device)
        return found

    def deny(self, stream: str, devices: Sequence[bytes], entry: AdminLogEntry) -> None:
        """Deny devices; those that are denied already stay so."""

        def work(run: Execute) -> None:
            self._append(run, entry)
            for device in devices:
                run(
                    "INSERT INTO denied VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                    stream,
                    device,
                    entry.at_ms,
                )

        self._tables.change_alone(work)

    def allow(self, stream: str, devices: Sequence[bytes], entry: AdminLogEntry) -> None:
        """Take devices off the deny list; those that are not on it stay as they are."""

        def work(run: Execute) -> None:
            self._append(run, entry)
            for device in devices:
                run("DELETE FROM denied WHERE stream = %s AND device = %s", stream, device)

        self._tables.change_alone(work)

    # Settings of streams

    def set_note(
        self, stream: str, name: str, content: dict[str, Any], entry: AdminLogEntry
    ) -> None:
        """Replace a note that holds a setting of a stream."""

        def work(run: Execute) -> None:
            self._append(run, entry)
            write_note(run, stream, name, content)

        self._tables.change_alone(work)

    # Silences of alert rules

    def silences(self) -> dict[str, dict[str, int]]:
        """Return until when rules are silenced, by stream and fingerprint; some may have ended."""
        rows = self._tables.read(
            lambda run: run("SELECT stream, rule, until_ms FROM silence").fetchall()
        )
        found: dict[str, dict[str, int]] = {}
        for stream, rule, until_ms in rows:
            found.setdefault(stream, {})[rule] = until_ms
        return found

    def silence(self, stream: str, rule: str, until_ms: int, entry: AdminLogEntry) -> None:
        """Silence a rule, in place of an earlier silence of it; delete those that have ended."""

        def work(run: Execute) -> None:
            self._append(run, entry)
            run("DELETE FROM silence WHERE until_ms <= %s", entry.at_ms)
            run(
                "INSERT INTO silence VALUES (%s, %s, %s)"
                " ON CONFLICT (stream, rule) DO UPDATE SET until_ms = excluded.until_ms",
                stream,
                rule,
                until_ms,
            )

        self._tables.change_alone(work)

    def end_silence(self, stream: str, rule: str, entry: AdminLogEntry) -> None:
        """End the silence of a rule, if there is one."""

        def work(run: Execute) -> None:
            self._append(run, entry)
            run("DELETE FROM silence WHERE stream = %s AND rule = %s", stream, rule)

        self._tables.change_alone(work)


def check_log(run: Execute, chain: Chain) -> ChainCheck:
    """Follow the chain of the admin log from one end to the other."""
    rows = run(_WHOLE_LOG, LOG).fetchall()
    seal, entries = rows[0][0], [row[1:] for row in rows if row[1] is not None]
    link, last, damage = b"", 0, None
    for number, *row, stored in entries:
        link, last = chain.log_link(link, number, *row), number
        if stored != link:
            damage = Damage(number, "this entry, or one before it, was changed or moved")
            break
    if damage is None and not _is_end(run, chain, last, link, seal):
        damage = Damage(last + 1, "entries from here on are missing")
    ids = [row[0] for row in entries] or [None]
    return ChainCheck(LOG, len(entries), ids[0], ids[-1], damage)


def _is_end(run: Execute, chain: Chain, last: int, link: bytes, seal: str | None) -> bool:
    """Return whether the log ends with this entry.

    In a store of release 0.2.0 in which nothing was ever logged there is no seal, nor anything that
    comes with an entry.
    """
    if last or seal is not None or chain.seals_log:
        return chain.holds_log(last, link, seal)
    return run(_LOGGED, KEYRING).fetchone() is None


def _last(run: Execute) -> tuple[int, bytes]:
    """Return the number and the link of the last entry."""
    row = run("SELECT id, link FROM admin_log ORDER BY id DESC LIMIT 1").fetchone()
    return (0, b"") if row is None else (row[0], row[1])
