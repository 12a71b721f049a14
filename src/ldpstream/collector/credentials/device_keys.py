"""Device keys and report authentication (docs/protocol.md): derived, never stored."""

from __future__ import annotations

import hashlib
import hmac
import logging
from functools import cache

import numpy as np

from ldpstream.arrays import Bytes, Flags
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
from ldpstream.protocol.authentication import device_key, key_prefix, report_mac
from ldpstream.protocol.limits import DEVICE_BYTES, MAC_BYTES

SIDE_BY_SIDE = 16
"""From this many records on, the vectorised hash is faster than a loop over `hmac.digest`."""


_log = logging.getLogger(__name__)

_HEX = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), np.uint16)


class DeviceKeys:
    """The keys of one stream's devices.

    >>> keys = DeviceKeys(b"master secret", "regions")
    >>> keys.of(bytes(16)).hex()[:16]
    'ab9fb62e3060145c'
    """

    def __init__(self, master: bytes, stream: str) -> None:
        self._master = master
        self._prefix = key_prefix(stream)
        self._stream = stream
        key = hashlib.sha256(master).digest() if len(master) > BLOCK_BYTES else master
        block = np.frombuffer(key.ljust(BLOCK_BYTES, b"\0"), np.uint8).reshape(1, BLOCK_BYTES)
        self._inner = absorb(INITIAL, as_words(block) ^ _INNER)[:, 0]
        self._outer = absorb(INITIAL, as_words(block) ^ _OUTER)[:, 0]

    def of(self, device: bytes) -> bytes:
        return device_key(self._master, self._stream, device)

    def of_many(self, devices: Bytes) -> HashWords:
        """The keys of many devices, one in each row, as words with a column for each key."""
        digits = _HEX[devices].view(np.uint8)
        return _both_passes(self._inner, self._outer, _message(self._prefix, digits))


def authentic(
    keys: DeviceKeys, prefix: bytes, devices: Bytes, macs: Bytes, reports: Bytes
) -> Flags:
    """Which records carry the right MAC, compared in constant time."""
    if len(devices) < SIDE_BY_SIDE or not vectorised_is_right():
        return np.array(
            [
                hmac.compare_digest(
                    report_mac(keys.of(device.tobytes()), prefix, report.tobytes()), mac.tobytes()
                )
                for device, mac, report in zip(devices, macs, reports, strict=True)
            ],
            np.bool_,
        )
    expected = report_words(keys, prefix, devices, reports)
    given = as_words(np.ascontiguousarray(macs))
    same: Flags = np.bitwise_or.reduce(expected ^ given, axis=0) == 0
    return same


def report_words(keys: DeviceKeys, prefix: bytes, devices: Bytes, reports: Bytes) -> HashWords:
    """The MACs of many reports, with a column for each MAC."""
    blocks = np.zeros((BLOCK_WORDS, len(devices)), np.uint32)
    blocks[:DIGEST_WORDS] = keys.of_many(devices)
    inner, outer = absorb(INITIAL, blocks ^ _INNER), absorb(INITIAL, blocks ^ _OUTER)
    return _both_passes(inner, outer, _message(prefix, reports))[: MAC_BYTES // 4]


@cache
def vectorised_is_right() -> bool:
    """Check the vectorised MACs against those of `hmac`, once in a process.

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
    found = np.ascontiguousarray(report_words(keys, prefix, devices, reports).T, ">u4").tobytes()
    pairs = zip(devices, reports, strict=True)
    codes = [report_mac(keys.of(one.tobytes()), prefix, report.tobytes()) for one, report in pairs]
    return found == b"".join(codes)


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
