"""A compact map from devices to numbers: at most 48 bytes for an entry, against 200 in a dict."""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Bytes
from ldpstream.compiled import compiled
from ldpstream.oracles.kernels.splitmix import mix

Numbers = NDArray[np.uint64]

ABSENT = np.uint64(0)
"""The number of an empty slot: no device is mapped to it."""

_SMALLEST = 1 << 6


class DeviceTable:
    """A hash table: open addressing, linear probing, at most half full, no deletion.

    Devices choose their numbers, so the first slot depends on a secret: nobody can aim for long
    chains.

    >>> table = DeviceTable()
    >>> devices = np.arange(32, dtype=np.uint8).reshape(2, 16)
    >>> table.add(devices[:1], np.array([7], np.uint64)).tolist()
    [0]
    >>> table.add(devices, np.array([8, 9], np.uint64)).tolist(), len(table)
    ([7, 0], 2)
    >>> table.find(devices).tolist()
    [7, 9]
    """

    def __init__(self) -> None:
        self._keys = np.zeros((_SMALLEST, 2), np.uint64)
        self._numbers = np.zeros(_SMALLEST, np.uint64)
        self._length = 0
        self._secret = np.array([secrets.randbits(64) for _ in range(2)], np.uint64)

    def __len__(self) -> int:
        return self._length

    def add(self, devices: Bytes, numbers: Numbers) -> Numbers:
        """Map each device to its number unless it has one; return the old numbers, or ABSENT."""
        while 2 * (self._length + len(devices)) > len(self._numbers):
            self._grow()
        before = np.empty(len(devices), np.uint64)
        keys = _as_words(devices)
        added = _add(self._keys, self._numbers, self._secret, keys, numbers, before)
        self._length += int(added)
        return before

    def find(self, devices: Bytes) -> Numbers:
        """The number of each device, or ABSENT."""
        found = np.empty(len(devices), np.uint64)
        _find(self._keys, self._numbers, self._secret, _as_words(devices), found)
        return found

    def _grow(self) -> None:
        used = self._numbers != ABSENT
        keys, numbers = self._keys[used], self._numbers[used]
        size = 2 * len(self._numbers)
        self._keys, self._numbers = np.zeros((size, 2), np.uint64), np.zeros(size, np.uint64)
        _add(self._keys, self._numbers, self._secret, keys, numbers, np.empty_like(numbers))


def _as_words(devices: Bytes) -> Numbers:
    return np.ascontiguousarray(devices).view(np.uint64)


@compiled()
def _slot(
    keys: Numbers, numbers: Numbers, secret: Numbers, first: np.uint64, second: np.uint64
) -> np.int64:
    """The slot of the key, or the empty slot where it would be."""
    size = len(numbers)
    mixed = mix(mix(first ^ secret[0]) ^ second ^ secret[1])
    place = np.int64(mixed & np.uint64(size - 1))
    while numbers[place] != np.uint64(0) and (keys[place, 0] != first or keys[place, 1] != second):
        place = (place + 1) & (size - 1)
    return place


@compiled()
def _add(
    keys: Numbers,
    numbers: Numbers,
    secret: Numbers,
    new_keys: Numbers,
    new_numbers: Numbers,
    before: Numbers,
) -> int:
    added = 0
    for i in range(len(new_numbers)):
        place = _slot(keys, numbers, secret, new_keys[i, 0], new_keys[i, 1])
        before[i] = numbers[place]
        if before[i] == np.uint64(0):
            keys[place, 0] = new_keys[i, 0]
            keys[place, 1] = new_keys[i, 1]
            numbers[place] = new_numbers[i]
            added += 1
    return added


@compiled()
def _find(
    keys: Numbers, numbers: Numbers, secret: Numbers, wanted: Numbers, found: Numbers
) -> None:
    for i in range(len(found)):
        found[i] = numbers[_slot(keys, numbers, secret, wanted[i, 0], wanted[i, 1])]
