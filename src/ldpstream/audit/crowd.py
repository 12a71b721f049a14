"""The rest of the fleet, with the real randomiser and the real ledger arithmetic, but no files.

It makes the stream change, so that adaptive mechanisms publish as often as they can.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

from ldpstream.collector.credentials.device_keys import StreamKeys
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.oracles.tagged.device import Tagged
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.ledger import Ledger, Promise
from ldpstream.privacy.randomness import SystemSource
from ldpstream.protocol.authentication import report_mac
from ldpstream.protocol.limits import DEVICE_BYTES
from ldpstream.protocol.slots import group_of


class Crowd:
    """A number of devices that all hold the same label at any time."""

    def __init__(self, size: int, epsilon: Epsilon, window: int) -> None:
        self.numbers = [secrets.token_bytes(DEVICE_BYTES) for _ in range(size)]
        self._ledgers = [Ledger((Promise(epsilon.nano, window),)) for _ in range(size)]
        self._source = SystemSource()

    def records(self, asking: OpenRound, keys: StreamKeys, first_place: int) -> Iterator[bytes]:
        """Yield the signed records of those who answer; on a roster they start at `first_place`."""
        t, nano = asking.stored.t, asking.stored.epsilon_nano
        whole = asking.collector.device
        for place, number in enumerate(self.numbers):
            if not asking.asks(first_place + place) or not self._source.coin(*asking.stored.rate):
                continue
            if not self._ledgers[place].allows(t, nano):
                continue
            self._ledgers[place] = self._ledgers[place].spend(t, nano).forget(t)
            key = keys.of(number)
            device = whole if not isinstance(whole, Tagged) else _in_its_group(whole, key)
            report = device.encode(device.perturb(t % 2, self._source))
            yield number + report_mac(key, asking.prefix, report) + report


def _in_its_group(device: Tagged[Any], key: bytes) -> Tagged[Any]:
    """Return a randomiser of texts as the device of this key has it."""
    return Tagged(device.inner, device.tags, group_of(key, device.tags))
