"""A simulated fleet that reports texts, and what a collector makes of it from an empty list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Floats
from ldpstream.errors import Mistake, Problem
from ldpstream.mechanisms.following import KEPT_WINDOWS, Following
from ldpstream.oracles.hadamard.device import Device
from ldpstream.oracles.kernels.labels import drawn_columns
from ldpstream.oracles.lab_half import draw_seed, threshold
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.streams.words import WordStream, shares_of
from ldpstream.vocabulary.device import Vocabulary
from ldpstream.vocabulary.evidence import ColumnCounts
from ldpstream.vocabulary.kernels import Texts
from ldpstream.vocabulary.planning import PREFIXES, discoverable_share, planned_bits

LIGHT = 0.3
"""A text is listed falsely if it is held by less than this part of what is heavy."""
MORE_BYTES = 2
"""What is found is at most so much longer than the longest prefix."""


class TextFleet:
    """Devices that each hold one of `texts`, report once in a window, in a slot of their own."""

    def __init__(
        self,
        texts: Texts,
        holders: NDArray[np.uint32],
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
        self._buckets = buckets_of(texts, vocabulary)

    def report(self, t: int) -> list[ColumnCounts]:
        """Return the columns that are reported at t, group by group."""
        now = self._slots == t % self._window
        return [
            self._reported(np.flatnonzero(now & (self._groups == group)), group)
            for group in range(len(self._buckets))
        ]

    def _reported(self, devices: NDArray[np.int64], group: int) -> ColumnCounts:
        values = self._buckets[group][self._holders[devices]]
        device, seed = self._device, draw_seed(self._rng)
        return ColumnCounts.of(
            drawn_columns(values, device.columns, threshold(float(device.p)), seed)
        )


def buckets_of(texts: Texts, vocabulary: Vocabulary) -> NDArray[np.uint32]:
    """Return the bucket of each text, in a row for each group."""
    return np.stack(
        [texts.buckets(one.seed, vocabulary.buckets, one.length) for one in vocabulary.groups]
    )


@dataclass(frozen=True)
class Goal:
    """The texts that are to be found, by their share of the fleet."""

    heavy: float
    light: float
    """A text of a smaller share that is listed is false."""
    longest: int
    """Longer texts, in bytes, need not be found."""

    @classmethod
    def of(cls, vocabulary: Vocabulary, epsilon: Epsilon, users: int) -> Goal:
        """Return what may be expected of a vocabulary after three windows."""
        lengths = vocabulary.prefixes
        heavy = min(1.0, discoverable_share(users, epsilon, len(lengths), KEPT_WINDOWS))
        return cls(heavy, LIGHT * heavy, lengths[-1] + MORE_BYTES if lengths else 0)


@dataclass(frozen=True)
class Found:
    """The outcome of a run over a vocabulary."""

    found: int
    """Texts of at least `heavy` that were listed in some release."""
    missed: int
    false: int
    """Texts that were listed and are held by fewer than `light`, over all releases."""
    listed: int
    """Texts listed, over all releases."""
    windows: float | None
    """The windows after which the last of the heavy texts was listed; None if one was not, or if
    there are none."""
    coverage: float | None
    """The share of listed figures that lie in their intervals; None if nothing was listed."""
    rest_coverage: float | None
    """The share of releases in which the share of all other texts lies in its interval."""


@dataclass
class TextJudge:
    """Judges releases of texts by the true shares."""

    truth: dict[bytes, float]
    goal: Goal
    first: dict[bytes, int] = field(default_factory=dict)
    """The timestamp at which each text was first listed."""
    inside: list[bool] = field(default_factory=list)
    rests: list[bool] = field(default_factory=list)
    false: int = 0

    def see(
        self, t: int, texts: Sequence[bytes], ends: tuple[Floats, Floats], rest: tuple[float, float]
    ) -> Floats:
        """Judge a release; return the true shares of what it lists."""
        for text in texts:
            self.first.setdefault(text, t)
        shares = np.array([self.truth.get(text, 0.0) for text in texts])
        low, high = ends
        self.false += int(np.sum(shares < self.goal.light))
        self.inside += ((low <= shares) & (shares <= high)).tolist()
        if len(texts):
            self.rests.append(bool(rest[0] <= 1 - shares.sum() <= rest[1]))
        return shares

    def found(self, window: int, begin: int = 0) -> Found:
        """Return the outcome; windows count from the timestamp `begin`."""
        goal = self.goal
        wanted = {
            text
            for text, share in self.truth.items()
            if share >= goal.heavy and len(text) <= goal.longest
        }
        missed = wanted - self.first.keys()
        last = max((self.first[text] - begin for text in wanted - missed), default=None)
        return Found(
            found=len(wanted) - len(missed),
            missed=len(missed),
            false=self.false,
            listed=len(self.inside),
            windows=None if missed or last is None else last / window,
            coverage=_mean(self.inside),
            rest_coverage=_mean(self.rests),
        )


def follow(
    fleet: TextFleet,
    following: Following,
    timestamps: int,
    truth: dict[bytes, float],
    goal: Goal,
    progress: Callable[[int], None] = lambda _: None,
) -> Found:
    """Run a fleet over some timestamps, and judge what was listed by the true shares."""
    judge = TextJudge(truth, goal)
    for t in range(1, timestamps + 1):
        listed = following.step(t, fleet.report(t))
        judge.see(t, listed.texts, (listed.low, listed.high), listed.rest_interval)
        progress(1)
    return judge.found(following.window)


def planned(users: int, epsilon: Epsilon, seed: int) -> Vocabulary:
    """Return the vocabulary that a live stream would have, with a salt of its own."""
    salt = int(np.random.default_rng((seed, users)).integers(1 << 62))
    return Vocabulary(salt, planned_bits(users, epsilon), PREFIXES)


def simulate_texts(
    stream: WordStream,
    epsilon: Epsilon,
    window: int,
    vocabulary: Vocabulary,
    *,
    seed: int = 0,
    progress: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Follow a stream of texts from an empty list; return a row of figures."""
    if window < 1:
        raise Mistake(Problem.WINDOW_RANGE, given=window)
    if stream.users < window:
        raise Mistake(Problem.TOO_FEW_USERS, users=stream.users, window=window, needed=window)
    rng = np.random.default_rng(seed)
    goal = Goal.of(vocabulary, epsilon, stream.users)
    texts = [text.encode() for text in stream.domain.labels]
    fleet = TextFleet(Texts.of(texts), stream.holders, vocabulary, epsilon, window, rng)
    following = Following(vocabulary, epsilon, window, stream.users)
    truth = shares_of(texts, stream.holders)
    found = follow(fleet, following, stream.timestamps, truth, goal, progress)
    return {
        "stream": stream.name,
        "users": stream.users,
        "timestamps": stream.timestamps,
        "texts": len(stream.domain),
        "mechanism": "lpf",
        "epsilon": str(epsilon),
        "window": window,
        "bits": vocabulary.bits,
        "prefixes": list(vocabulary.prefixes),
        "seed": seed,
        "heavy": goal.heavy,
    } | asdict(found)


def _mean(flags: Sequence[bool]) -> float | None:
    return float(np.mean(flags)) if flags else None
