"""The best Kalman filter with fixed parameters, chosen with the truth at hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from accuracy_streams import GRID, SMOOTH, Row
from ldpstream.arrays import Floats
from ldpstream.lab.fleet import LabFleet
from ldpstream.lab.simulation import run, settings_of
from ldpstream.mechanisms.mechanism import Mechanism
from ldpstream.mechanisms.registry import build
from ldpstream.mechanisms.settings import RunOptions, Settings
from ldpstream.refine.filter import Filter
from ldpstream.refine.levels import LevelBank
from ldpstream.refine.linear import LinearBank, trend
from ldpstream.streams.stream import Stream

HINDSIGHT_REPEATS = 40
"""Enough repeats to see a difference of a few per cent."""


def against_hindsight() -> Iterator[Row]:
    """Compare LPF with the one Kalman filter that the truth shows to be best for the stream."""
    for named in (SMOOTH[0], SMOOTH[2]):
        for epsilon, window in GRID:
            settings = settings_of(named.stream, epsilon, window, RunOptions())
            records = [_tallies(named.stream, settings, seed) for seed in range(HINDSIGHT_REPEATS)]
            all_at_once = _side_by_side(records)
            best, which = min(
                (_kalman_mse(make, all_at_once), name) for name, make in _fixed_filters()
            )
            ours = float(np.mean([_filter_mse(record) for record in records]))
            yield {
                "stream": named.name,
                "epsilon": epsilon,
                "window": window,
                "lpf_mse": ours,
                "hindsight_mse": best,
                "hindsight": which,
                "ratio": ours / best,
            }


@dataclass(frozen=True)
class Record:
    """The tallies of LPU on a stream, and the truth."""

    truth: Floats
    estimates: Floats
    variance: Floats


def _tallies(stream: Stream, settings: Settings, seed: int) -> Record:
    rng = generator(seed)
    mechanism: Mechanism = build("lpu", settings)
    released = run(stream, mechanism, rng, fleet=LabFleet.of(mechanism, rng))
    variance = np.broadcast_to(released.variance.mean(axis=0), released.variance.shape)
    return Record(released.truth, released.released, variance)


def _side_by_side(records: list[Record]) -> Record:
    """Merge the labels of all repeats into one stream: a fixed filter treats them alike."""
    columns = zip(*((one.truth, one.estimates, one.variance) for one in records), strict=True)
    return Record(*(np.concatenate(column, axis=1) for column in columns))


def _fixed_filters() -> Iterator[tuple[str, Any]]:
    def level(noise: float) -> Any:
        return lambda start, _: _OneLevel(start, noise)

    def slope(noise: float) -> Any:
        return lambda start, scale: LinearBank([trend(noise)], start, 0.25, scale)

    for noise in np.logspace(-6, 1, 22):
        yield f"level, noise {noise:.1e}", level(float(noise))
    for noise in np.logspace(-10, -1, 28):
        yield f"trend, noise {noise:.1e}", slope(float(noise))


class _OneLevel(LevelBank):
    def __init__(self, start: Floats, noise: float) -> None:
        super().__init__(start, 0.25, hazard=1e-300)
        self.means, self.variances = self.means[:1], self.variances[:1]
        self._noises = np.array([[noise]])


def _kalman_mse(make: Any, record: Record) -> float:
    scale = float(record.variance.mean())
    bank = make(np.full(record.truth.shape[1], 0.5), scale)
    errors = []
    for truth, estimate, variance in zip(
        record.truth, record.estimates, record.variance, strict=True
    ):
        bank.predict(scale)
        bank.update(estimate, variance)
        errors.append(np.mean((bank.means[0] - truth) ** 2))
    return float(np.mean(errors))


def _filter_mse(record: Record) -> float:
    smooth = Filter(record.truth.shape[1])
    errors = []
    for truth, estimate, variance in zip(
        record.truth, record.estimates, record.variance, strict=True
    ):
        smooth.update(estimate, variance)
        errors.append(np.mean((smooth.estimate - truth) ** 2))
    return float(np.mean(errors))


def generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed))
