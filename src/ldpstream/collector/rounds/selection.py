"""How a share of the users is reached: by slots, an open announcement, or a roster of devices."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldpstream.arrays import Bytes, Flags
from ldpstream.collector.kernels.device_table import DeviceTable
from ldpstream.collector.rounds.rest_schedule import RestSchedule
from ldpstream.collector.store.contract import NO_RESTS, NewRound, Places, Rests, Store
from ldpstream.mechanisms.messages import Ask
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.limits import DEVICE_BYTES


@dataclass(frozen=True)
class Asked:
    """Which devices of a roster are asked in a round."""

    roster_size: int
    numbers: Places | None
    """None stands for all of them."""

    @classmethod
    def of(cls, stored: NewRound) -> Asked:
        if stored.asked is None:
            return cls(stored.roster_size, None)
        return cls(stored.roster_size, np.frombuffer(stored.asked, "<u4").astype(np.int64))

    def __len__(self) -> int:
        return self.roster_size if self.numbers is None else len(self.numbers)

    @property
    def packed(self) -> bytes | None:
        return None if self.numbers is None else self.numbers.astype("<u4").tobytes()

    def mask(self) -> Flags:
        """Return whether each device is asked, by its number."""
        if self.numbers is None:
            return np.ones(self.roster_size, np.bool_)
        chosen = np.zeros(self.roster_size, np.bool_)
        chosen[self.numbers] = True
        return chosen


@dataclass(frozen=True)
class Choice:
    """How an ask is put to the devices."""

    rate: tuple[int, int]
    asked: Asked | None
    """None with open selection: nobody knows who will answer."""


class Selection(ABC):
    """Decides whom to ask, given all rounds of the window."""

    def __init__(self, epsilon: Epsilon, window: int, population: int) -> None:
        self.epsilon = epsilon
        self.window = window
        self.population = population

    @abstractmethod
    def choose(self, t: int, ask: Ask) -> Choice: ...

    @abstractmethod
    def remember(self, stored: NewRound) -> None:
        """Take a round into account, in order of t; after a restart, the older ones as well."""

    def follow(self, epsilon: Epsilon, window: int) -> None:
        """Go on under new terms, which are never looser."""
        self.epsilon, self.window = epsilon, window

    def heard(self, name: str, reports: int) -> None:  # noqa: B027 - a roster need not know
        """Take note of how many reports a counted round has got."""

    def answered(self, stored: NewRound, devices: Iterator[Bytes] | None) -> Rests:
        """Record who has answered a round that is being counted; return which devices rest now."""
        return NO_RESTS


class SlotSelection(Selection):
    """Ask nobody: one device in w has its slot at a timestamp, and reports by itself."""

    def choose(self, t: int, ask: Ask) -> Choice:
        return Choice((1, self.window), None)

    def remember(self, stored: NewRound) -> None:
        pass


class OpenSelection(Selection):
    """Announce a rate, at which devices that have the budget left select themselves.

    When n users of N are to be asked, and m have given all of their epsilon in this window, the
    rate is n / (N - m): the m stay silent by themselves. For a round that is still open, m counts
    those that were asked for; for one that is counted, those that answered.
    """

    def __init__(self, epsilon: Epsilon, window: int, population: int) -> None:
        super().__init__(epsilon, window, population)
        self._rounds: deque[NewRound] = deque()
        self._answered: dict[str, int] = {}

    def choose(self, t: int, ask: Ask) -> Choice:
        while self._rounds and self._rounds[0].t <= t - self.window:
            self._answered.pop(self._rounds.popleft().name, None)
        available = self.population
        by_everyone = sum(stored.epsilon_nano for stored in self._rounds)
        if by_everyone + ask.epsilon.nano > self.epsilon.nano:
            available -= sum(self._spent_in(stored) for stored in self._rounds)
        return Choice((min(ask.users, max(available, 0)), max(available, 1)), None)

    def remember(self, stored: NewRound) -> None:
        self._rounds.append(stored)

    def heard(self, name: str, reports: int) -> None:
        self._answered[name] = reports

    def _spent_in(self, stored: NewRound) -> int:
        """Return how many of the expected population answered; a larger one has more users left."""
        return min(self._answered.get(stored.name, stored.users), stored.users)


class RosterSelection(Selection):
    """Sample from the devices that have enrolled and have the budget left in the window.

    Budget division asks everyone for a little; population division asks a sample for all of
    epsilon, so that none of them is asked again in the window. One rule covers both: what a device
    was asked for in a window stays within epsilon.

    Devices that have left are not asked; those that do not answer are asked ever more rarely
    (`RestSchedule`).
    """

    def __init__(
        self, epsilon: Epsilon, window: int, population: int, store: Store, stream: str
    ) -> None:
        super().__init__(epsilon, window, population)
        self._store = store
        self._stream = stream
        self._lock = threading.Lock()
        self._places = DeviceTable()
        self._size = 0
        self._spent = np.zeros(0, np.int64)
        self._charges: deque[tuple[int, Asked, int]] = deque()
        self.catch_up()

    def __len__(self) -> int:
        return self._size

    def catch_up(self) -> None:
        """Add the devices that have enrolled since; those that enrol later miss this round."""
        enrolled = self._store.roster(self._stream, self._size)
        new = np.frombuffer(enrolled, np.uint8).reshape(-1, DEVICE_BYTES)
        with self._lock:
            places = np.arange(self._size, self._size + len(new), dtype=np.uint64)
            self._places.add(new, places + np.uint64(1))
            self._size += len(new)

    def numbers_of(self, devices: Bytes) -> Places:
        """Return the place of each device; -1: it is not on the roster."""
        with self._lock:
            return self._places.find(devices).astype(np.int64) - 1

    def choose(self, t: int, ask: Ask) -> Choice:
        self._forget(t - self.window)
        self.catch_up()
        size = self._size
        stays = np.ones(size, np.bool_)
        stays[self._store.left(self._stream)] = False
        # Fewer devices than expected are asked in proportion, so that they last for the window.
        there = int(np.count_nonzero(stays & self._silence.speaks(t, size)))
        wanted = -(-ask.users * min(there, self.population) // self.population)
        affords = self._accounts(size)[:size] + ask.epsilon.nano <= self.epsilon.nano
        free = np.flatnonzero(affords & stays & self._silence.may_ask(t, size))
        chosen = _sample(free, min(wanted, len(free)))
        return Choice((1, 1), Asked(size, None if len(chosen) == size else chosen))

    def remember(self, stored: NewRound) -> None:
        asked = Asked.of(stored)
        self._charges.append((stored.t, asked, stored.epsilon_nano))
        self._charge(asked, stored.epsilon_nano)

    def answered(self, stored: NewRound, devices: Iterator[Bytes] | None) -> Rests:
        """Let those who were silent rest, unless nobody could be heard."""
        if devices is None:
            return NO_RESTS
        places = [self.numbers_of(part) for part in devices]
        if not places:
            return NO_RESTS
        asked = np.flatnonzero(Asked.of(stored).mask())
        return self._silence.heard(stored.t, asked, np.concatenate(places))

    def follow(self, epsilon: Epsilon, window: int) -> None:
        super().follow(epsilon, window)
        self._silence.window = window

    @cached_property
    def _silence(self) -> RestSchedule:
        return RestSchedule(self.window, self._store.rests(self._stream))

    def _forget(self, last: int) -> None:
        while self._charges and self._charges[0][0] <= last:
            _, asked, nano = self._charges.popleft()
            self._charge(asked, -nano)

    def _charge(self, asked: Asked, nano: int) -> None:
        accounts = self._accounts(asked.roster_size)
        if asked.numbers is None:
            accounts[: asked.roster_size] += nano
        else:
            accounts[asked.numbers] += nano

    def _accounts(self, size: int) -> Places:
        """Return what each device was asked for in the window, in nano-epsilon."""
        if size > len(self._spent):
            self._spent = np.concatenate(
                [self._spent, np.zeros(2 * size - len(self._spent), np.int64)]
            )
        return self._spent


def _sample(free: Places, size: int) -> Places:
    """Sample `size` of the free devices uniformly; return them in ascending order.

    Those with the smallest of random 64-bit keys from the operating system are chosen; a tie at
    the border is too unlikely to matter.
    """
    if size == len(free):
        return free
    if size == 0:
        return free[:0]
    keys = np.frombuffer(os.urandom(8 * len(free)), np.uint64)
    return np.sort(free[np.argpartition(keys, size - 1)[:size]])


def remember_all(selection: Selection, rounds: Iterable[NewRound]) -> None:
    for stored in rounds:
        selection.remember(stored)
