"""Keys, tokens, denials and silences of a running collector, and the log of who changed them.

All of it is in the store. What is needed for every report is also in memory, and read again when
the log of the store has grown: at once after a change here, and within a second after one by
another collector of a shared store.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ldpstream.collector.alerts.rules import Rule
from ldpstream.collector.clock import Clock
from ldpstream.collector.credentials.deny_list import NOBODY, DenyList
from ldpstream.collector.credentials.enrolment_tokens import (
    EnrolmentToken,
    digest_of,
    draw_token,
)
from ldpstream.collector.credentials.masters import KeyRing
from ldpstream.collector.credentials.sealing import check_of
from ldpstream.collector.credentials.secrets import MasterSource, Secrets
from ldpstream.collector.intake.queue import RETRY_SECONDS
from ldpstream.collector.periodic import PeriodicThread
from ldpstream.collector.store.admin_tables import AdminLogEntry
from ldpstream.collector.store.contract import Store
from ldpstream.errors import LdpStreamError, Mistake, Problem

POLL_SECONDS = 1.0
"""How often the log of a shared store is looked at."""
TAKE_UP_MS = 10_000
"""How long after a rotation keys of the new master secret are not given out yet, where several
collectors must get to know it."""

OPERATION = "operation"
"""The name of the note that says whether an administrator has paused a stream."""

_log = logging.getLogger(__name__)


class Administration:
    """What administrators have decided, as one collector sees it."""

    def __init__(self, store: Store, secrets: Secrets, clock: Clock) -> None:
        self._store = store
        self._tables = store.admin
        self._source: MasterSource = secrets.source
        self._clock = clock
        self._lock = threading.RLock()
        self._thread = PeriodicThread("admin", POLL_SECONDS, self._watch)
        self.stop = self._thread.stop
        masters = self._tables.masters((secrets.master, *self._source.known))
        if masters is None:
            raise Mistake(Problem.MASTER_DIFFERS, where="the store")
        self.ring = KeyRing(masters, clock.now_ms)
        self._denied: dict[str, DenyList] = {}
        self._silences: dict[str, dict[str, int]] = {}
        self._tokens: dict[bytes, EnrolmentToken] = {}
        self._serial = -1
        self.changed: Callable[[], None] = lambda: None
        """Called when administrators have changed something, here or at another collector."""
        self.refresh()

    def start(self) -> None:
        if self._store.shared:
            self._thread.start()

    def _watch(self) -> None:
        try:
            self.refresh()
        except LdpStreamError as error:
            _log.warning("keys, tokens and the deny list are as they were: %s", error)

    def refresh(self) -> None:
        """Read from the store what has changed; look for a master secret that is missing."""
        with self._lock:
            changed = self._read()
        if changed:
            self.changed()

    def _read(self) -> bool:
        """Read what has changed, and return whether anything has; the lock is held."""
        serial = self._tables.serial()
        if serial != self._serial:
            self._denied = {
                stream: DenyList(devices) for stream, devices in self._tables.denied().items()
            }
            self._silences = self._tables.silences()
            self._tokens = {one.digest: one for one in self._tables.tokens()}
        if serial != self._serial or self.ring.is_behind:
            self._find_masters()
        changed, self._serial = serial != self._serial, serial
        return changed

    @contextmanager
    def _deciding(self) -> Iterator[None]:
        """Hold the lock for a decision, with all that is in the store before and after it.

        `changed` is called without the lock: it takes locks under which others call `refresh`.
        """
        changed = False
        try:
            with self._lock:
                changed = self._read()
                yield
                changed |= self._read()
        finally:
            if changed:
                self.changed()

    def _find_masters(self) -> None:
        known = (self.ring.masters.current, *self._source.known)
        found = self._tables.masters(known)
        if found is None:
            if not self.ring.is_behind:
                _log.error("the store has a master secret that this collector does not have")
            self.ring.is_behind = True
            return
        self.ring.masters = found
        try:
            self._source.settle(found.current)
        except OSError as error:  # a read-only volume: whoever put the new one there moves it
            _log.warning("the new master secret stays where it is: %s", error.strerror)
        self.ring.is_behind = False

    def denied(self, stream: str) -> DenyList:
        """Return the deny list of a stream."""
        return self._denied.get(stream, NOBODY)

    # Master secrets

    def keys(self) -> dict[str, Any]:
        """Return what may be told of the master secrets: nothing of what they are."""
        masters, now = self.ring.masters, self._clock.now_ms()
        return {
            "current": _name(masters.current),
            "earlier": None if masters.earlier is None else _name(masters.earlier),
            "earlier_is_good": masters.valid,
            "issued_in_ms": max(masters.issued_ms - now, 0) if masters.valid else 0,
            "slots": _name(masters.slots),
            "new": None if self._source.new is None else _name(self._source.new),
            "behind": self.ring.is_behind,
        }

    def prepare(self, who: str) -> dict[str, Any]:
        """Generate the new master secret for the other collectors' machines; it is not used yet."""
        with self._lock:
            file = self._source.prepare()
            assert self._source.new is not None
            drawn = _name(self._source.new)
            self._tables.record(self._entry(who, "prepare-master", {"new": drawn}))
        return self.keys() | {"file": None if file is None else str(file)}

    def rotate(self, who: str, *, at_once: bool = False) -> dict[str, Any]:
        """Replace the current master secret with a new one; keys of the current one stay valid.

        With `at_once` no earlier key is valid any more. Who knows a master secret can sign for
        devices that never were, and would renew their keys while it is.

        The new one is on disk before the store is changed, in one transaction. A rotation that was
        cut short is finished by the next start, or by calling this again.
        """
        with self._deciding():
            masters = self.ring.masters
            if self.ring.is_behind:
                raise Mistake(Problem.UNAVAILABLE, seconds=RETRY_SECONDS)
            if masters.valid and not at_once:
                raise Mistake(Problem.ROTATION_UNDER_WAY)
            self._source.prepare()
            new = self._source.new
            assert new is not None
            wait_ms = TAKE_UP_MS if self._store.shared else 0
            rotated = masters.rotated(new, self._clock.now_ms() + wait_ms)
            rotated = rotated.dropped() if at_once else rotated
            names = {"from": _name(masters.current), "to": _name(new), "at_once": at_once}
            self._tables.replace_masters(masters, rotated, self._entry(who, "rotate-master", names))
        return self.keys()

    def drop(self, who: str) -> dict[str, Any]:
        """Invalidate the keys of the earlier master secret."""
        with self._deciding():
            masters = self.ring.masters
            if not masters.valid or masters.earlier is None:
                raise Mistake(Problem.NOTHING_TO_DROP)
            names = {"earlier": _name(masters.earlier)}
            entry = self._entry(who, "drop-master", names)
            self._tables.replace_masters(masters, masters.dropped(), entry)
        return self.keys()

    # Enrolment tokens

    def find_token(self, token: str, stream: str) -> EnrolmentToken | None:
        """Return the enrolment token that someone has sent, if it is for the stream."""
        found = self._tokens.get(digest_of(token))
        return found if found is not None and found.opens(stream) else None

    def use_token(self, token: EnrolmentToken, stream: str, device: bytes, level: str) -> None:
        """Count that a device enrols with a token, at a level; refuse one that has ended."""
        self._tables.use_token(token.name, stream, device, self._clock.now_ms(), level)

    def tokens(self) -> list[EnrolmentToken]:
        return self._tables.tokens()

    def create_token(
        self,
        who: str,
        name: str,
        stream: str | None,
        lasts_ms: int | None,
        most_uses: int | None,
    ) -> tuple[str, EnrolmentToken]:
        """Make an enrolment token; return it, for the only time, and what is stored of it."""
        token, now = draw_token(), self._clock.now_ms()
        expires = None if lasts_ms is None else now + lasts_ms
        made = EnrolmentToken(name, digest_of(token), stream, now, expires, most_uses)
        about = {"name": name, "stream": stream, "expires_ms": expires, "most_uses": most_uses}
        self._tables.add_token(made, self._entry(who, "create-token", about))
        self.refresh()
        return token, made

    def revoke_token(self, who: str, name: str) -> None:
        """Revoke a token: nobody can enrol with it any more."""
        self._tables.revoke_token(name, self._entry(who, "revoke-token", {"name": name}))
        self.refresh()

    # The deny list

    def deny(self, who: str, stream: str, devices: Sequence[bytes]) -> None:
        """Refuse whatever these devices send to a stream."""
        self._tables.deny(stream, devices, self._entry(who, "deny", _about(stream, devices)))
        self.refresh()

    def allow(self, who: str, stream: str, devices: Sequence[bytes]) -> None:
        """Take devices off the deny list of a stream."""
        self._tables.allow(stream, devices, self._entry(who, "allow", _about(stream, devices)))
        self.refresh()

    def listed(self, stream: str) -> list[str]:
        """Return the numbers of the devices that a stream denies."""
        return [device.hex() for device in self._tables.denied().get(stream, [])]

    # Pauses

    def pause(self, who: str, stream: str, *, paused: bool) -> None:
        """Store that a stream is paused, or that it goes on."""
        entry = self._entry(who, "pause" if paused else "resume", {"stream": stream})
        self._tables.set_note(stream, OPERATION, {"paused": paused}, entry)
        self.refresh()

    # Silences of alert rules

    def silenced_until(self, stream: str, rule: str) -> int:
        """Return until when a rule is silenced, which may be over; 0: it is not."""
        return self._silences.get(stream, {}).get(rule, 0)

    def silence(self, who: str, stream: str, rule: Rule, lasts_ms: int) -> None:
        """Silence a rule for a time."""
        until_ms = self._clock.now_ms() + lasts_ms
        about = {"stream": stream, "rule": rule.name, "until_ms": until_ms}
        entry = self._entry(who, "silence", about)
        self._tables.silence(stream, rule.fingerprint, until_ms, entry)
        self.refresh()

    def end_silence(self, who: str, stream: str, rule: Rule) -> None:
        """End the silence of a rule."""
        entry = self._entry(who, "end-silence", {"stream": stream, "rule": rule.name})
        self._tables.end_silence(stream, rule.fingerprint, entry)
        self.refresh()

    # The log

    def log(self, after: int, limit: int) -> list[AdminLogEntry]:
        """Return at most `limit` entries after one, in order."""
        return self._tables.log(after, limit)

    def record(self, who: str, action: str, details: dict[str, Any]) -> None:
        """Log what an administrator has changed elsewhere."""
        self._tables.record(self._entry(who, action, details))
        self.refresh()

    def _entry(self, who: str, action: str, details: dict[str, Any]) -> AdminLogEntry:
        return AdminLogEntry(self._clock.now_ms(), who, action, details)


def _name(master: bytes) -> str:
    """Return a name for a master secret that reveals nothing about it."""
    return check_of(master)[:8]


def _about(stream: str, devices: Iterable[bytes]) -> dict[str, Any]:
    return {"stream": stream, "devices": [device.hex() for device in devices]}
