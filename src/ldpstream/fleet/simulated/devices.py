"""The state of simulated devices, as arrays, and the file that keeps it between two runs."""

from __future__ import annotations

import io
import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Bytes, Flags
from ldpstream.device.clock import ClockReading, OwnTime
from ldpstream.errors import Mistake, Problem
from ldpstream.machine_clock import MachineClock
from ldpstream.protocol.limits import DEVICE_BYTES, KEY_BYTES
from ldpstream.protocol.terms import Terms, TermsRefused
from ldpstream.whole_files import write_whole

Moments = NDArray[np.int64]
NEVER = -(1 << 62)
"""The moment of the last debit of a device that has not reported."""
_ARRAYS = ("secrets", "numbers", "keys", "slot_keys", "levels", "debited_ms")


@dataclass
class Devices:
    """The secrets, numbers, keys and last debits of devices, one in each row.

    A report in a slot costs the whole of epsilon, so the last debit is all of a ledger: a device
    may report again when a window has passed since, in own time.

    >>> from ldpstream.machine_clock import SystemClock
    >>> devices = Devices.new(3, SystemClock())
    >>> devices.debit(np.array([0, 2]))
    >>> devices.free(np.arange(3), span_ms=60_000).tolist()
    [False, True, False]
    """

    secrets: Bytes
    numbers: Bytes
    keys: Bytes
    slot_keys: Bytes
    levels: NDArray[np.uint8]
    """The level of privacy of each device, as its place among the strata of the terms."""
    debited_ms: Moments
    own: OwnTime
    clock: MachineClock = field(repr=False)
    terms: Terms | None = None
    """None until the first device has enrolled."""
    successor: Terms | None = None
    """Terms that were accepted and are not in force yet."""
    origin: str = ""
    """The collector that they enrol with."""
    reporting: bool = False
    """Whether a run has begun whose debits may not be on disk."""

    @classmethod
    def new(cls, number: int, clock: MachineClock) -> Self:
        return cls(
            np.frombuffer(os.urandom(KEY_BYTES * number), np.uint8).reshape(number, KEY_BYTES),
            np.zeros((number, DEVICE_BYTES), np.uint8),
            np.zeros((number, KEY_BYTES), np.uint8),
            np.zeros((number, KEY_BYTES), np.uint8),
            np.zeros(number, np.uint8),
            np.full(number, NEVER, np.int64),
            OwnTime(0, ClockReading.at(clock)),
            clock,
        )

    def __len__(self) -> int:
        return len(self.secrets)

    @property
    def enrolled(self) -> Flags:
        """Which devices have a key."""
        enrolled: Flags = (self.keys != 0).any(axis=1)
        return enrolled

    def own_ms(self) -> int:
        return self.own.at(ClockReading.at(self.clock))

    def free(self, rows: NDArray[np.int64], span_ms: int | Moments) -> Flags:
        """Return which of these devices may spend epsilon now, after spans of this length."""
        free: Flags = self.debited_ms[rows] + span_ms <= self.own_ms()
        return free

    def debit(self, rows: NDArray[np.int64]) -> None:
        """Enter the debit of a whole epsilon for each of these devices."""
        self.debited_ms[rows] = self.own_ms()

    def with_more(self, number: int) -> Self:
        """Return these devices and as many new ones as make `number` of them."""
        new = type(self).new(number - len(self), self.clock)
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(new, name)]) for name in _ARRAYS
        }
        return replace(self, **arrays)

    def save(self, file: Path) -> None:
        """Write the state as a whole; the file holds keys, so only its owner may read it."""
        own = self.own.resumed(ClockReading.at(self.clock))
        facts = {
            "own_ms": own.own_ms,
            "look": [own.clocks.wall_ms, own.clocks.steady_ms, own.clocks.boot],
            "terms": self.terms and self.terms.to_json(),
            "successor": self.successor and self.successor.to_json(),
            "origin": self.origin,
            "reporting": self.reporting,
        }
        content = io.BytesIO()
        arrays: dict[str, Any] = {name: getattr(self, name) for name in _ARRAYS}
        np.savez(content, facts=np.array(json.dumps(facts)), **arrays)
        write_whole(file, content.getvalue())

    @classmethod
    def load(cls, file: Path, clock: MachineClock) -> Self:
        """Read a state. If a run ended without saving it, every device counts as spent now."""
        try:
            with np.load(file, allow_pickle=False) as stored:
                facts = json.loads(str(stored["facts"]))
                arrays = {name: stored[name] for name in _ARRAYS if name in stored}
            own = OwnTime(facts["own_ms"], ClockReading(*facts["look"])).resumed(
                ClockReading.at(clock)
            )
            terms = Terms.read(facts["terms"]) if facts["terms"] else None
            later = facts.get("successor")
            successor = Terms.read(later) if later else None
            # Files of release 0.2.0 have one key for both, and no levels.
            arrays.setdefault("slot_keys", arrays["keys"].copy())
            arrays.setdefault("levels", np.zeros(len(arrays["keys"]), np.uint8))
        except (OSError, ValueError, KeyError, TypeError, EOFError, TermsRefused) as error:
            fix = "give a file that --state has written, or another name"
            raise Mistake(Problem.DATA_FILE, file=file, what=str(error), fix=fix) from None
        devices = cls(**arrays, own=own, clock=clock, terms=terms, origin=facts["origin"])
        devices.successor = successor
        if facts["reporting"]:
            devices.debit(np.arange(len(devices)))
        return devices
