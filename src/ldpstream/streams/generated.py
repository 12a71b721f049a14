"""Random streams: cycles, jumps, bursts, drifts and S-curves, all drawn from a seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Flags, Floats
from ldpstream.domain import Domain
from ldpstream.streams.stream import CountsStream

FEWEST, MOST = 2, 64
"""Labels."""
CALM, WILD = 0.1, 1.5
"""The standard deviation by which a movement changes the logarithm of a label's share."""
DAYS = (24, 48, 96, 144)
"""Usual lengths of a day, in timestamps."""
WEEK, WEEKEND = 7, 2
"""Days."""


def generated(users: int = 200_000, timestamps: int = 800, seed: int = 0) -> CountsStream:
    """A stream that nobody chose: calm or wild, with 2 to 64 labels, rare to big.

    The share of a label is in proportion to the exponential of its level; what moves the levels,
    and how far, is drawn from the seed.

    >>> [len(generated(users=1000, timestamps=10, seed=seed).domain) for seed in range(6)]
    [18, 11, 4, 2, 53, 32]
    """
    rng = np.random.default_rng(seed)
    labels = int(_between(rng, FEWEST, MOST + 1))
    draw = _Draw(rng, timestamps, labels, size=_between(rng, CALM, WILD))
    levels = np.tile(_levels(draw), (timestamps, 1))
    for movement, chance in MOVEMENTS.items():
        if rng.random() < chance:
            levels += movement(draw)
    weights = np.exp(levels - levels.max(axis=1, keepdims=True))
    return CountsStream.in_proportion("generated", Domain.numbered(labels), weights, users)


@dataclass(frozen=True)
class _Draw:
    """The size of the levels that are moved, and of the movements."""

    rng: np.random.Generator
    timestamps: int
    labels: int
    size: float

    def movers(self) -> Flags:
        """Return which labels take part in a movement: any share of them."""
        return self.rng.random(self.labels) < self.rng.random()

    def heights(self) -> Floats:
        """Return how far a movement goes for each label; 0 for those that take no part."""
        return self.size * self.rng.normal(size=self.labels) * self.movers()

    def events(self, shortest: float, longest: float) -> NDArray[np.int64]:
        """Return random moments, in order; the mean time between them is drawn, too."""
        number = self.rng.poisson(self.timestamps / _between(self.rng, shortest, longest))
        return np.sort(self.rng.integers(0, self.timestamps, number))


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniform."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _levels(draw: _Draw) -> Floats:
    """Return levels of labels of very different size: a power of the rank, and some noise."""
    ranks = draw.rng.permutation(draw.labels) + 1
    return draw.rng.normal(0, 0.5, draw.labels) - draw.rng.uniform(0.5, 2.5) * np.log(ranks)


def _cycle(draw: _Draw) -> Floats:
    """Return a day of up to 8 harmonics; in half of all cases weekends differ from other days."""
    rng = draw.rng
    usual = rng.random() < 0.5
    day = int(rng.choice(DAYS)) if usual else round(_between(rng, 8, 200))
    times = np.arange(draw.timestamps) + rng.integers(WEEK * day)
    wave = np.zeros((draw.timestamps, draw.labels))
    for harmonic in range(1, rng.integers(1, 9) + 1):
        angle = 2 * np.pi * harmonic * times / day
        phases = rng.uniform(0, 2 * np.pi, draw.labels)
        wave += draw.heights() / harmonic * np.sin(angle[:, None] + phases)
    if rng.random() < 0.5:
        weekend = (times // day % WEEK < WEEKEND)[:, None]
        wave = np.where(weekend, rng.random() * wave + draw.heights(), wave)
    return wave


def _drift(draw: _Draw) -> Floats:
    """Return random walks, which go as far over the whole stream as other movements do."""
    steps = draw.rng.normal(size=(draw.timestamps, draw.labels)) / np.sqrt(draw.timestamps)
    return np.cumsum(steps, axis=0) * draw.size * draw.movers()


def _jumps(draw: _Draw) -> Floats:
    """Return levels that change at random moments, each time of some labels, and stay."""
    change, level = np.zeros((draw.timestamps, draw.labels)), np.zeros(draw.labels)
    for t in draw.events(40, 400):
        moving = draw.movers()
        after = np.where(moving, draw.size * draw.rng.normal(size=draw.labels), level)
        change[t] += after - level
        level = after
    return np.cumsum(change, axis=0)


def _bursts(draw: _Draw) -> Floats:
    """Return crowds and outages: a label is up or down for a while, or comes back slowly."""
    rng, levels = draw.rng, np.zeros((draw.timestamps, draw.labels))
    slow = rng.random() < 0.5
    for t in draw.events(20, 200):
        length = round(_between(rng, 1, 30))
        since = np.arange(min(3 * length if slow else length, draw.timestamps - t))
        shape = np.exp(-since / length) if slow else np.ones(len(since))
        levels[t + since, rng.integers(draw.labels)] += 2 * draw.size * rng.normal() * shape
    return levels


def _s_curves(draw: _Draw) -> Floats:
    """Return levels that go from one height to another for good, fast or slowly."""
    rng = draw.rng
    middles = rng.uniform(0, draw.timestamps, draw.labels)
    widths = [_between(rng, 2, 100) for _ in range(draw.labels)]
    away = (np.arange(draw.timestamps)[:, None] - middles) / widths
    rise: Floats = draw.heights() * (1 + np.tanh(away / 2))
    return rise


def _jitter(draw: _Draw) -> Floats:
    """Return a small movement that is new at each timestamp."""
    noise = draw.rng.normal(size=(draw.timestamps, draw.labels))
    return noise * draw.size * _between(draw.rng, 0.003, 0.1) * draw.movers()


MOVEMENTS = {_cycle: 0.6, _drift: 0.5, _jumps: 0.4, _bursts: 0.4, _s_curves: 0.3, _jitter: 0.25}
"""The chance of each movement to be part of a stream."""
