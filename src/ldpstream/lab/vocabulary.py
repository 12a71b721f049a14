"""A simulated fleet that reports texts, and what a collector makes of it from an empty list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Floats
from ldpstream.mechanisms.following import Following, Listed
from ldpstream.oracles.hadamard.device import Device
from ldpstream.oracles.kernels.labels import drawn_columns
from ldpstream.oracles.lab_half import draw_seed, threshold
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.vocabulary.device import Vocabulary
from ldpstream.vocabulary.evidence import Columns
from ldpstream.vocabulary.kernels import Texts


class TextFleet:
    """Devices that each hold one of `texts`, report once in a window, in a slot of their own."""

    def __init__(
        self,
        texts: Texts,
        holders: NDArray[np.int64],
        vocabulary: Vocabulary,
        epsilon: Epsilon,
        window: int,
        rng: np.random.Generator,
    ) -> None:
        self._holders = holders
        self._device = Device(vocabulary.buckets, epsilon)
        self._groups = rng.integers(len(vocabulary.groups), size=len(holders))
        self._slots = rng.integers(window, size=len(holders))
        self._window, self._rng = window, rng
        self._buckets = [
            texts.buckets(group.seed, vocabulary.buckets, group.length)
            for group in vocabulary.groups
        ]

    def report(self, t: int) -> list[Columns]:
        """Return the columns that are reported at t, group by group."""
        now = self._slots == t % self._window
        return [
            self._reported(np.flatnonzero(now & (self._groups == group)), group)
            for group in range(len(self._buckets))
        ]

    def _reported(self, devices: NDArray[np.int64], group: int) -> Columns:
        values = self._buckets[group][self._holders[devices]]
        device, seed = self._device, draw_seed(self._rng)
        return Columns.of(drawn_columns(values, device.columns, threshold(float(device.p)), seed))


def zipf_holders(
    texts: int, users: int, exponent: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return which text each user holds: text i with probability in proportion to i^-exponent."""
    weights = np.arange(1, texts + 1) ** -exponent
    return rng.choice(texts, size=users, p=weights / weights.sum())


def random_texts(number: int, longest: int, rng: np.random.Generator) -> list[bytes]:
    """Return distinct words of 3 to `longest` random letters."""
    found: dict[bytes, None] = {}
    while len(found) < number:
        lengths = rng.integers(3, longest + 1, size=number)
        letters = rng.integers(ord("a"), ord("z") + 1, size=(number, longest)).astype(np.uint8)
        found |= dict.fromkeys(
            row[:length].tobytes() for row, length in zip(letters, lengths, strict=True)
        )
    return list(found)[:number]


@dataclass(frozen=True)
class Found:
    """How a run over a vocabulary went."""

    found: int
    """Texts of at least `heavy` that were listed at some look."""
    missed: int
    false: int
    """Texts that were listed and are held by fewer than `light`, over all looks."""
    listed: int
    """Texts listed, over all looks."""
    windows: float
    """The windows after which the last of the heavy texts was listed; NaN if one was not."""
    coverage: float
    """The share of listed figures that lie in their intervals."""
    rest_coverage: float
    """The share of looks at which the share of all other texts lies in its interval."""


def follow(
    fleet: TextFleet,
    following: Following,
    timestamps: int,
    truth: dict[bytes, float],
    heavy: float,
    light: float,
    longest: int,
) -> Found:
    """Run a fleet over some timestamps, and judge what was listed by the true shares."""
    wanted = {text for text, share in truth.items() if share >= heavy and len(text) <= longest}
    first: dict[bytes, int] = {}
    inside: list[bool] = []
    rests: list[bool] = []
    false = 0
    for t in range(1, timestamps + 1):
        listed = following.step(t, fleet.report(t))
        for text in listed.texts:
            first.setdefault(text, t)
        shares = _shares(listed, truth)
        false += int(np.sum(shares < light))
        inside.extend(((listed.low <= shares) & (shares <= listed.high)).tolist())
        if listed.texts:
            low, high = listed.rest_interval
            rests.append(low <= 1 - shares.sum() <= high)
    missed = wanted - first.keys()
    last = max((first[text] for text in wanted - missed), default=0)
    return Found(
        found=len(wanted) - len(missed),
        missed=len(missed),
        false=false,
        listed=len(inside),
        windows=float("nan") if missed else last / following.window,
        coverage=_mean(inside),
        rest_coverage=_mean(rests),
    )


def _mean(flags: Sequence[bool]) -> float:
    return float(np.mean(flags)) if flags else float("nan")


def _shares(listed: Listed, truth: dict[bytes, float]) -> Floats:
    return np.array([truth.get(text, 0.0) for text in listed.texts])


def shares_of(texts: Sequence[bytes], holders: NDArray[np.int64]) -> dict[bytes, float]:
    """Return the share of the fleet that holds each text."""
    counts = np.bincount(holders, minlength=len(texts)) / len(holders)
    return dict(zip(texts, counts.tolist(), strict=True))
