"""Device keys and report authentication (docs/protocol.md): derived, never stored."""

from __future__ import annotations

import hashlib
import hmac

import numpy as np
from numpy.typing import NDArray

from ldpstream.collector.kernels.sha256 import (
    BLOCK_BYTES,
    INITIAL,
    Words,
    absorb,
    digests,
    padding,
)

DEVICE_BYTES = 16
MAC_BYTES = 16
SIDE_BY_SIDE = 16
"""From this many records on, the vectorised hash is faster than a loop over `hmac.digest`."""

Bytes = NDArray[np.uint8]

_HEX = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), np.uint16)


class DeviceKeys:
    """The keys of one stream's devices.

    >>> keys = DeviceKeys(b"master secret", "regions")
    >>> keys.of(bytes(16)).hex()[:16]
    'ab9fb62e3060145c'
    """

    def __init__(self, master: bytes, stream: str) -> None:
        self._master = master
        self._prefix = f"ldpstream device key 1\n{stream}\n".encode()
        self._hmac = _OneKey(master)

    def of(self, device: bytes) -> bytes:
        return hmac.digest(self._master, self._prefix + device.hex().encode(), "sha256")

    def of_many(self, devices: Bytes) -> Bytes:
        """The keys of devices that stand one a row."""
        digits = _HEX[devices].view(np.uint8).reshape(len(devices), 2 * DEVICE_BYTES)
        return self._hmac.digests(_rows(self._prefix, digits))


def report_prefix(path: str, round_name: str) -> bytes:
    """What precedes a report's bytes in the message that is authenticated."""
    return f"POST\n{path}\n{round_name}\n".encode()


def report_mac(key: bytes, prefix: bytes, report: bytes) -> bytes:
    """The code of one report: what a device sends."""
    return hmac.digest(key, prefix + report, "sha256")[:MAC_BYTES]


def authentic(
    keys: DeviceKeys, prefix: bytes, devices: Bytes, macs: Bytes, reports: Bytes
) -> NDArray[np.bool_]:
    """Which records carry the right code; the time it takes does not tell how wrong others are."""
    if len(devices) < SIDE_BY_SIDE:
        return np.array(
            [
                hmac.compare_digest(
                    report_mac(keys.of(device.tobytes()), prefix, report.tobytes()), mac.tobytes()
                )
                for device, mac, report in zip(devices, macs, reports, strict=True)
            ],
            np.bool_,
        )
    expected = report_macs(keys, prefix, devices, reports)
    same: NDArray[np.bool_] = np.bitwise_or.reduce(expected ^ macs, axis=1) == 0
    return same


def report_macs(keys: DeviceKeys, prefix: bytes, devices: Bytes, reports: Bytes) -> Bytes:
    """The codes of many reports, side by side."""
    return _digests_by_key(keys.of_many(devices), _rows(prefix, reports))[:, :MAC_BYTES]


def warm_up() -> None:
    """Compile, or load, what the first batch would have to wait for."""
    rows = np.zeros((SIDE_BY_SIDE, DEVICE_BYTES), np.uint8)
    authentic(DeviceKeys(b"", ""), b"", rows, rows, rows)


class _OneKey:
    """HMAC-SHA256 of many messages under one key (RFC 2104)."""

    def __init__(self, key: bytes) -> None:
        if len(key) > BLOCK_BYTES:
            key = hashlib.sha256(key).digest()
        block = np.frombuffer(key.ljust(BLOCK_BYTES, b"\0"), np.uint8).reshape(1, BLOCK_BYTES)
        self._inner = absorb(INITIAL, block ^ np.uint8(0x36))[:, 0]
        self._outer = absorb(INITIAL, block ^ np.uint8(0x5C))[:, 0]

    def digests(self, messages: Bytes) -> Bytes:
        return _finish(self._inner, self._outer, messages)


def _digests_by_key(keys: Bytes, messages: Bytes) -> Bytes:
    """HMAC-SHA256 of each message under the key in the same row."""
    blocks = np.zeros((len(keys), BLOCK_BYTES), np.uint8)
    blocks[:, : keys.shape[1]] = keys
    inner = absorb(INITIAL, blocks ^ np.uint8(0x36))
    outer = absorb(INITIAL, blocks ^ np.uint8(0x5C))
    return _finish(inner, outer, messages)


def _finish(inner: Words, outer: Words, messages: Bytes) -> Bytes:
    """Both passes of HMAC, from the states after the key's block."""
    first = digests(absorb(inner, _padded(messages)))
    return digests(absorb(outer, _padded(first)))


def _rows(prefix: bytes, rest: Bytes) -> Bytes:
    table = np.empty((len(rest), len(prefix) + rest.shape[1]), np.uint8)
    table[:, : len(prefix)] = np.frombuffer(prefix, np.uint8)
    table[:, len(prefix) :] = rest
    return table


def _padded(messages: Bytes) -> Bytes:
    """Messages that follow one block (the key's), padded to whole blocks."""
    length = messages.shape[1]
    end = np.frombuffer(padding(BLOCK_BYTES + length), np.uint8)
    table = np.empty((len(messages), length + len(end)), np.uint8)
    table[:, :length] = messages
    table[:, length:] = end
    return table
