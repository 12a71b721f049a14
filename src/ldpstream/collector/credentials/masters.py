"""The master secrets of a collector: the current one, and what is left of those before it."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass, replace

from ldpstream.collector.credentials.sealing import seal, unseal
from ldpstream.protocol.authentication import device_key, message_mac
from ldpstream.protocol.limits import LATEST_MS

_LABEL = "keyring"


@dataclass(frozen=True)
class Masters:
    """The master secrets after some rotations.

    Device keys come from the current one. Those of the earlier one are valid, too, until it is
    dropped; then it only tells its devices from forgers. Slots come from the first one for ever, so
    that a rotation moves no device to another timestamp.

    >>> masters = Masters.single(b"first").rotated(b"second", issued_ms=0).dropped()
    >>> third = masters.rotated(b"third", issued_ms=7)
    >>> third.slots, third.earlier, Masters.of(b"third", third.sealed()) == third
    (b'first', b'second', True)
    """

    current: bytes
    slots: bytes
    """The first master secret; who knows it knows no more than slots and moments."""
    earlier: bytes | None = None
    valid: bool = False
    """Whether keys of the earlier one are still valid."""
    issued_ms: int = 0
    """From when keys of the current one are given out: by then all collectors know it."""

    @classmethod
    def single(cls, master: bytes) -> Masters:
        """Return the secrets of a collector that never had another one."""
        return cls(master, master)

    def __repr__(self) -> str:
        return "Masters(...)"

    def rotated(self, new: bytes, issued_ms: int) -> Masters:
        """Return the secrets when `new` takes the place of the current one."""
        return Masters(new, self.slots, self.current, True, issued_ms)

    def dropped(self) -> Masters:
        """Return the secrets when keys of the earlier one are no longer valid."""
        return replace(self, valid=False)

    def issued(self, now_ms: int) -> bytes:
        """Return the secret from which devices get their keys now."""
        early = self.valid and now_ms < self.issued_ms
        return self.earlier if early and self.earlier is not None else self.current

    @property
    def good(self) -> tuple[bytes, ...]:
        """The secrets whose keys are valid."""
        return (self.current, self.earlier) if self.valid and self.earlier else (self.current,)

    def sealed(self) -> str:
        """Return all but the current one, as a text that only the current one opens."""
        earlier = None if self.earlier is None else self.earlier.hex()
        content = [self.slots.hex(), earlier, self.valid, self.issued_ms]
        return seal(self.current, _LABEL, json.dumps(content).encode())

    @classmethod
    def of(cls, current: bytes, sealed: str) -> Masters | None:
        """Return the secrets from the text of `sealed`; None if another one has sealed it."""
        content = unseal(current, _LABEL, sealed)
        if content is None:
            return None
        slots, earlier, valid, issued_ms = json.loads(content)
        known = None if earlier is None else bytes.fromhex(earlier)
        return cls(current, bytes.fromhex(slots), known, valid, issued_ms)


class KeyRing:
    """The master secrets as they are now; whoever rotates them replaces `masters` as a whole."""

    def __init__(self, masters: Masters, now_ms: Callable[[], int] = lambda: LATEST_MS) -> None:
        self.masters = masters
        self._now_ms = now_ms
        self.is_behind = False
        """Whether the store has a current master secret that this collector does not know."""

    @property
    def issued(self) -> bytes:
        """The secret from which devices get their keys now."""
        return self.masters.issued(self._now_ms())

    @property
    def renews(self) -> bool:
        """Whether a device with a key of the earlier master secret gets a new one now."""
        masters = self.masters
        return masters.valid and masters.issued(self._now_ms()) == masters.current

    def has_signed(
        self, stream: str, level: str, number: bytes, message: bytes, mac: bytes, *, ever: bool
    ) -> bool:
        """Return whether a device has signed a message, with a key that is valid (or ever was).

        It takes as long whatever the answer is.
        """
        masters = self.masters
        ended = (masters.earlier,) if ever and masters.earlier is not None else ()
        found = False
        for master in dict.fromkeys((*masters.good, *ended)):
            key = device_key(master, stream, number, level)
            found |= hmac.compare_digest(message_mac(key, message), mac)
        return found
