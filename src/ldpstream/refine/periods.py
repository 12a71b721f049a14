"""A search for the period of a stream, if it has one, in a sketch of its recent past."""

from __future__ import annotations

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.refine.relabelling import Relabelling

SKETCHES = 4
HISTORY = 768
SHORTEST = 4
CHECK_EVERY = 16
LEAST_HISTORY = 32
APART = 1.5
"""Two periods of one stream differ by at least this factor."""
DIP = 0.8
"""At a period, D(p) is less than this share of the mean of D(p/2) and D(3p/2)."""


class PeriodFinder:
    """A search in a few random projections of the histograms, whatever the number of labels.

    D(p) is the mean squared difference of values p apart. It is flat for noise and grows evenly
    for a random walk; at a period it dips below the mean of D(p/2) and D(3p/2).

    >>> finder = PeriodFinder(labels=2)
    >>> for t in range(256):
    ...     p = 0.3 + 0.1 * np.sin(2 * np.pi * t / 24)
    ...     finder.add(np.array([1 - p, p]))
    >>> round(finder.period() or 0)
    24
    """

    def __init__(self, labels: int, step: int = 1) -> None:
        self._step = step
        """Timestamps that are averaged, so that a history of the same length reaches further."""
        self._partial = np.zeros(min(labels, SKETCHES))
        self._projection = np.eye(labels) if labels <= SKETCHES else _signs(SKETCHES, labels)
        self._relabelled = False
        self.history = np.empty((0, len(self._projection)))
        self.seen = 0

    @classmethod
    def over(cls, values: Floats) -> PeriodFinder:
        """Return a search in a whole past, T x labels."""
        finder = cls(values.shape[1])
        finder.history, finder.seen = values @ finder._projection.T, len(values)
        return finder

    def add(self, values: Floats) -> None:
        self.seen += 1
        self._partial = self._partial + self._projection @ values / self._step
        if self.seen % self._step == 0:
            self.history = np.vstack([self.history[1 - HISTORY :], self._partial])
            self._partial = np.zeros_like(self._partial)

    def projected(self, variances: Floats) -> Floats:
        """Return the variances of the sketches of independent values with these variances."""
        projected: Floats = self._projection**2 @ variances
        return projected

    def folded(self, period: int) -> tuple[Floats, float]:
        """Return the mean over all whole periods of the past, and their number."""
        rounds = len(self.history) // period
        past = self.history[len(self.history) - rounds * period :]
        return past.reshape(rounds, period, -1).mean(axis=0), float(rounds)

    def due(self) -> bool:
        """Return whether to search again, which costs more than the filtering of a timestamp."""
        return self.seen % CHECK_EVERY == 0 and self.has_enough

    @property
    def has_enough(self) -> bool:
        return len(self.history) >= LEAST_HISTORY

    def state(self) -> dict[str, Floats]:
        counted = np.array([float(self.seen)])
        found = {"history": self.history, "partial": self._partial, "seen": counted}
        return found | ({"projection": self._projection} if self._relabelled else {})

    def restore(self, state: dict[str, Floats]) -> None:
        self.history, self._partial = state["history"], state["partial"]
        self.seen = int(state["seen"][0])
        self._relabelled = "projection" in state
        self._projection = state.get("projection", self._projection)

    def relabel(self, move: Relabelling, shares: Floats) -> None:
        """Go on with other labels; `shares` are the frequencies of those of before.

        The sketches go on where they were: the direction of labels that were merged is the mean of
        theirs, by their shares.
        """
        shares = np.maximum(shares, 1e-9)
        rows = len(self._projection)
        known = move.summed(self._projection * shares) / move.summed(shares, 1.0)
        self._projection = np.where(move.new, _signs(rows, move.labels), known)
        self._relabelled = True

    def period(self) -> float | None:
        """Return the shortest of the clearest periods, in timestamps; None if there is none."""
        return self._found(self.history, SHORTEST)

    def second(self, first: float) -> float | None:
        """Return a period beside the first: a clear one that is shorter, or what is left of the
        past, once it is taken off, that repeats more slowly.
        """
        shorter = self._found(self.history, SHORTEST, round(first / APART))
        if shorter is not None:
            return shorter
        lag = round(first / self._step)
        rest = self.history[lag:] - self.history[:-lag]
        return self._found(rest, round(APART * lag)) if len(rest) >= LEAST_HISTORY else None

    def _found(self, values: Floats, shortest: int, longest: int | None = None) -> float | None:
        apart = _differences(values)
        longest = min(len(values) // 2, longest or len(values))
        candidates = np.arange(shortest, longest + 1)
        if len(candidates) < 3:
            return None
        halves = (apart[candidates // 2] + apart[(candidates + 1) // 2]) / 2
        dips = 2 * apart[candidates] / (halves + apart[3 * candidates // 2])
        bottoms = 1 + np.flatnonzero(
            (dips[1:-1] <= dips[:-2]) & (dips[1:-1] <= dips[2:]) & (dips[1:-1] < DIP)
        )
        if not len(bottoms):
            return None
        deepest = dips[bottoms].min()
        clear = bottoms[dips[bottoms] < deepest + 0.1 * (1 - deepest)]
        return self._step * self._refined(apart, float(candidates[clear[0]]))

    @staticmethod
    def _refined(apart: Floats, period: float) -> float:
        """Refine a period by the dips at 1, 2, 4, ... times it, between the grid points."""
        times = 1
        while times * period < len(apart) - 2:
            reach = max(1.0, period / 4)
            first = max(1, round(times * period - reach))
            last = min(len(apart) - 2, round(times * period + reach))
            lowest = first + int(np.argmin(apart[first : last + 1]))
            before, here, after = apart[lowest - 1 : lowest + 2]
            bend = before - 2 * here + after
            offset = float(np.clip((before - after) / (2 * bend), -0.5, 0.5)) if bend > 0 else 0.0
            period = (lowest + offset) / times
            times *= 2
        return period


def _signs(sketches: int, labels: int) -> Floats:
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (sketches, labels))
    scaled: Floats = signs / np.sqrt(labels)
    return scaled


def _differences(history: Floats) -> Floats:
    """Return D(p) for p = 0 .. 3/4 of the history, by FFT: (x - y)^2 = x^2 + y^2 - 2xy."""
    values = history - history.mean(axis=0)
    length, sketches = values.shape
    lags = np.arange(3 * length // 4 + 1)
    spectrum = np.fft.rfft(values, 2 * length, axis=0)
    products = np.fft.irfft(np.abs(spectrum) ** 2, axis=0).sum(axis=1)[lags]
    squares = np.concatenate([[0.0], np.cumsum(np.sum(values**2, axis=1))])
    early, late = squares[length - lags], squares[length] - squares[lags]
    apart: Floats = (early + late - 2 * products) / (sketches * (length - lags))
    return apart
