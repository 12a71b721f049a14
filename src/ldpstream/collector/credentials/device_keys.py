"""Device keys and report authentication (docs/protocol.md): derived, never stored."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, cached_property, lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Bytes, Flags
from ldpstream.collector.credentials.masters import KeyRing, Masters
from ldpstream.collector.kernels.sha256 import (
    BLOCK_BYTES,
    BLOCK_WORDS,
    DIGEST_WORDS,
    INITIAL,
    HashWords,
    absorb,
    as_words,
    padding,
)
from ldpstream.protocol.authentication import key_prefix, key_prefix_1, report_mac
from ldpstream.protocol.limits import DEVICE_BYTES, MAC_BYTES
from ldpstream.protocol.slots import (
    begins_epoch,
    comes_earlier,
    epoch_of,
    group_message,
    group_of,
    is_turn,
    slot_message,
    slot_of,
)

SIDE_BY_SIDE = 16
"""From this many records on, the vectorised hash is faster than a loop over `hmac.digest`."""


_log = logging.getLogger(__name__)

_HEX = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), np.uint16)


class KeyStanding(IntEnum):
    """The kind of key that a message was signed with, in one byte."""

    CURRENT = 0
    EARLIER = 1
    """A key of the earlier master secret, which is still valid."""
    ENDED = 2
    """One of the earlier master secret, which was dropped."""
    RELEASE_1 = 3
    """One of a device of release 0.1.0."""
    NONE = 4


Standings = NDArray[np.uint8]


class DeviceKeys:
    """The keys of one stream's devices under one master secret.

    >>> keys = DeviceKeys(b"master secret", "regions")
    >>> keys.of(bytes(16)).hex()[:16]
    '2c70f24e82fcce3c'
    """

    def __init__(self, master: bytes, stream: str, prefix: bytes | None = None) -> None:
        self._master = master
        self._prefix = key_prefix(stream) if prefix is None else prefix

    def of(self, device: bytes) -> bytes:
        return hmac.digest(self._master, self._prefix + device.hex().encode(), "sha256")

    def of_many(self, devices: Bytes) -> HashWords:
        """The keys of many devices, one in each row, as words with a column for each key."""
        digits, (inner, outer) = _HEX[devices].view(np.uint8), self._states
        return _both_passes(inner, outer, _message(self._prefix, digits))

    @cached_property
    def _states(self) -> tuple[HashWords, HashWords]:
        """The states after the key's block, which only the vectorised hash needs: it may fail."""
        long = len(self._master) > BLOCK_BYTES
        key = hashlib.sha256(self._master).digest() if long else self._master
        block = np.frombuffer(key.ljust(BLOCK_BYTES, b"\0"), np.uint8).reshape(1, BLOCK_BYTES)
        words = as_words(block)
        inner, outer = absorb(INITIAL, words ^ _INNER), absorb(INITIAL, words ^ _OUTER)
        return inner[:, 0], outer[:, 0]


class StreamKeys:
    """The keys of one stream's devices at one level, under all master secrets of a key ring."""

    def __init__(self, ring: KeyRing, stream: str, level: str = "") -> None:
        self.ring = ring
        self._stream = stream
        self._level = level
        self._under = lru_cache(maxsize=4)(self._under_master)
        self.at_level = cache(partial(StreamKeys, ring, stream))
        """Returns the keys at another level of privacy."""

    @classmethod
    def of_master(cls, master: bytes, stream: str) -> StreamKeys:
        """Return the keys of a collector that never had another master secret."""
        return cls(KeyRing(Masters.single(master)), stream)

    def of(self, device: bytes) -> bytes:
        """Return the key that a device gets when it enrols now."""
        return self._under(self.ring.issued).of(device)

    def slot_key(self, device: bytes) -> bytes:
        """Return the key that a device's slots and its moment come from."""
        return self._under(self.ring.masters.slots).of(device)

    def issued(self, device: bytes) -> dict[str, str]:
        """Return the members of an enrolment's answer: the key, and the slot key if it differs."""
        key, slot_key = self.of(device), self.slot_key(device)
        told = {"key": key.hex()}
        return told if slot_key == key else told | {"slot_key": slot_key.hex()}

    def signatures(
        self, devices: Bytes, macs: Bytes, reports: Bytes, prefix: bytes, prefix_1: bytes
    ) -> Signatures:
        """Find out with which key each report was signed; `prefix_1` is that of release 0.1.0.

        Keys of another master secret are derived only for devices that the current one does not
        know.
        """
        masters = self.ring.masters
        current = Signers(self._under(masters.current), devices)
        standings = np.full(len(devices), KeyStanding.NONE, np.uint8)
        standings[current.authentic(prefix, macs, reports)] = KeyStanding.CURRENT
        for standing, keys, message in self._others(masters, prefix, prefix_1):
            left = np.flatnonzero(standings == KeyStanding.NONE)
            if not len(left):
                break
            signers = Signers(keys, devices[left])
            standings[left[signers.authentic(message, macs[left], reports[left])]] = standing
        in_turn = (
            current
            if masters.slots == masters.current
            else Signers(self._under(masters.slots), devices)
        )
        return Signatures(standings, in_turn)

    def _others(
        self, masters: Masters, prefix: bytes, prefix_1: bytes
    ) -> Iterator[tuple[KeyStanding, DeviceKeys, bytes]]:
        """Yield the keys to try for devices that did not sign with the current master secret's."""
        if masters.earlier is not None:
            standing = KeyStanding.EARLIER if masters.valid else KeyStanding.ENDED
            yield standing, self._under(masters.earlier), prefix
        old = DeviceKeys(masters.slots, self._stream, key_prefix_1(self._stream))
        yield KeyStanding.RELEASE_1, old, prefix_1

    def _under_master(self, master: bytes) -> DeviceKeys:
        return DeviceKeys(master, self._stream, key_prefix(self._stream, self._level))


@dataclass(frozen=True)
class Signatures:
    """The keys that the reports of a batch were signed with, one in each row."""

    standings: Standings
    in_turn: Signers
    """The devices under the keys that their slots come from."""

    @property
    def good(self) -> Flags:
        """The reports that were signed with a valid key, as flags."""
        good: Flags = self.standings <= KeyStanding.EARLIER
        return good

    @property
    def earlier(self) -> Flags:
        """Which were signed with a valid key of the earlier master secret."""
        earlier: Flags = self.standings == KeyStanding.EARLIER
        return earlier


class Signers:
    """The devices of a batch, one in each row. Their keys are derived once, when first needed."""

    def __init__(self, keys: DeviceKeys, devices: Bytes) -> None:
        self._all = keys
        self._devices = devices

    def authentic(self, prefix: bytes, macs: Bytes, reports: Bytes) -> Flags:
        """Return which reports carry the right MAC, compared in constant time."""
        if not self._side_by_side:
            return np.array(
                [
                    hmac.compare_digest(report_mac(key, prefix, report.tobytes()), mac.tobytes())
                    for key, mac, report in zip(self._keys, macs, reports, strict=True)
                ],
                np.bool_,
            )
        given = as_words(np.ascontiguousarray(macs))
        found = self.hashes.mac_words(prefix, reports)
        same: Flags = np.bitwise_or.reduce(found ^ given, axis=0) == 0
        return same

    def are_due(self, window: int, t: int) -> Flags:
        """Return which devices have their turn at timestamp t."""
        if not self._side_by_side:
            return np.array([is_turn(key, window, t) for key in self._keys])
        return due(self.hashes.slots, window, t)

    def are_of(self, groups: int, given: Bytes) -> Flags:
        """Return which devices really belong to the vocabulary group that they claim."""
        if not self._side_by_side:
            return np.array(
                [
                    group_of(key, groups) == tag
                    for key, tag in zip(self._keys, given.tolist(), strict=True)
                ],
                np.bool_,
            )
        same: Flags = self.hashes.fractions(group_message(), groups) == given
        return same

    @property
    def _side_by_side(self) -> bool:
        return len(self._devices) >= SIDE_BY_SIDE and vectorised_is_right()

    @cached_property
    def _keys(self) -> list[bytes]:
        return [self._all.of(device.tobytes()) for device in self._devices]

    @cached_property
    def hashes(self) -> KeyedHashes:
        return KeyedHashes(self._all.of_many(self._devices))


class KeyHolders:
    """Devices that know their keys of 32 bytes, one in each row, and what they compute with them.

    The vectorised hash is used if it is right, else `hmac`.
    """

    def __init__(self, keys: Bytes) -> None:
        self._hashes = KeyedHashes.of(keys) if vectorised_is_right() else None
        self._keys = keys

    def macs(self, prefix: bytes, reports: Bytes) -> Bytes:
        """Return the MACs of a report under each key, one in each row."""
        if self._hashes is not None:
            return self._hashes.macs(prefix, reports)
        pairs = zip(self._each, reports, strict=True)
        macs = [report_mac(key, prefix, report.tobytes()) for key, report in pairs]
        return np.frombuffer(b"".join(macs), np.uint8).reshape(-1, MAC_BYTES)

    def slots(self, window: int, epoch: int) -> NDArray[np.uint64]:
        """Return the slot of each device in an epoch."""
        if self._hashes is not None:
            return self._hashes.slots(window, epoch)
        return np.array([slot_of(key, window, epoch) for key in self._each], np.uint64)

    def groups(self, groups: int) -> NDArray[np.uint64]:
        """Return the group of a vocabulary that each device belongs to."""
        if self._hashes is not None:
            return self._hashes.fractions(group_message(), groups)
        return np.array([group_of(key, groups) for key in self._each], np.uint64)

    @property
    def _each(self) -> Iterator[bytes]:
        return (key.tobytes() for key in self._keys)


class KeyedHashes:
    """HMACs under many keys at once, given as words with a column for each key."""

    def __init__(self, keys: HashWords) -> None:
        blocks = np.zeros((BLOCK_WORDS, keys.shape[1]), np.uint32)
        blocks[:DIGEST_WORDS] = keys
        self._inner = absorb(INITIAL, blocks ^ _INNER)
        self._outer = absorb(INITIAL, blocks ^ _OUTER)

    @classmethod
    def of(cls, keys: Bytes) -> KeyedHashes:
        """Return the hashes under keys of 32 bytes, one in each row."""
        return cls(as_words(np.ascontiguousarray(keys)))

    def mac_words(self, prefix: bytes, reports: Bytes) -> HashWords:
        """The MACs of a report under each key, with a column for each MAC."""
        return self._both_passes(_message(prefix, reports))[: MAC_BYTES // 4]

    def macs(self, prefix: bytes, reports: Bytes) -> Bytes:
        """The MACs of a report under each key, one in each row."""
        return np.ascontiguousarray(self.mac_words(prefix, reports).T, ">u4").view(np.uint8)

    def slots(self, window: int, epoch: int) -> NDArray[np.uint64]:
        """The slot of each device in an epoch."""
        return self.fractions(slot_message(epoch), window)

    def fractions(self, message: bytes, parts: int) -> NDArray[np.uint64]:
        """Return which of so many parts each device's HMAC of a message falls into."""
        none = np.empty((self._inner.shape[1], 0), np.uint8)
        words = self._both_passes(_message(message, none))
        high, low = words[0].astype(np.uint64), words[1].astype(np.uint64)
        places: NDArray[np.uint64] = (high << np.uint64(32) | low) % np.uint64(parts)
        return places

    def _both_passes(self, message: HashWords) -> HashWords:
        return _both_passes(self._inner, self._outer, message)


def due(slots: Callable[[int, int], NDArray[np.uint64]], window: int, t: int) -> Flags:
    """Return which devices have their turn at t, given a function that computes their slots."""
    epoch = epoch_of(t, window)
    due: Flags = slots(window, epoch) == t % window
    if begins_epoch(t, window):
        before = slots(window, epoch - 1).astype(np.int64)
        due &= ~comes_earlier(t % window, before, window)
    return due


@cache
def vectorised_is_right() -> bool:
    """Check the vectorised MACs and slots against those of `hmac`, once in a process.

    Caches of machine code have been seen to mix up two signatures of a kernel. Honest devices would
    be refused then, so a wrong hash is not used: `hmac` does the same, at a tenth of the speed.
    """
    try:
        right = all(_agrees_with_hmac(*case) for case in _CASES)
    except Exception:
        _log.exception("the vectorised SHA-256 does not run")
        right = False
    if not right:
        _log.warning("the vectorised SHA-256 is wrong: hmac is used; delete Numba's cache")
    return right


_CASES = ((16, 5, 2), (16, 100, 2), (65, 40, 70))
"""Rows, bytes of the prefix and of a report: one block and more of each, all lanes and more."""


def _agrees_with_hmac(rows: int, prefix_bytes: int, report_bytes: int) -> bool:
    def bytes_like(columns: int) -> Bytes:
        return (np.arange(rows * columns) * 151 % 251).astype(np.uint8).reshape(rows, columns)

    keys, prefix = DeviceKeys(b"a master secret", "stream"), b"p" * prefix_bytes
    devices, reports = bytes_like(DEVICE_BYTES), bytes_like(report_bytes)
    hashes = Signers(keys, devices).hashes
    found = hashes.macs(prefix, reports).tobytes()
    own = [keys.of(one.tobytes()) for one in devices]
    pairs = zip(own, reports, strict=True)
    codes = [report_mac(key, prefix, report.tobytes()) for key, report in pairs]
    slots = [slot_of(key, rows, report_bytes) for key in own]
    return found == b"".join(codes) and hashes.slots(rows, report_bytes).tolist() == slots


# HMAC (RFC 2104): a hash of the key's block, as `inner`, and the message; then one of the key's
# block, as `outer`, and that hash.

_INNER, _OUTER = np.uint32(0x36363636), np.uint32(0x5C5C5C5C)


def _both_passes(inner: HashWords, outer: HashWords, message: HashWords) -> HashWords:
    """HMAC from the states after the key's block, one for all, or a column for each message."""
    first = absorb(inner, message)
    second = np.zeros((BLOCK_WORDS, first.shape[1]), np.uint32)
    second[:DIGEST_WORDS] = first
    second[DIGEST_WORDS] = 0x80000000
    second[-1] = 8 * (BLOCK_BYTES + 4 * DIGEST_WORDS)
    return absorb(outer, second)


def _message(prefix: bytes, rest: Bytes) -> HashWords:
    """Padded messages after the key's block: the prefix, then a row of `rest` for each."""
    length = len(prefix) + rest.shape[1]
    end = np.frombuffer(padding(BLOCK_BYTES + length), np.uint8)
    table = np.empty((len(rest), length + len(end)), np.uint8)
    table[:, : len(prefix)] = np.frombuffer(prefix, np.uint8)
    table[:, len(prefix) : length] = rest
    table[:, length:] = end
    return as_words(table)
