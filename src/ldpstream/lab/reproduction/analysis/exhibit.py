"""The exhibit `analysis`: each formula of the paper with predicted, measured and their ratio."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from enum import StrEnum
from itertools import product

import numpy as np

from ldpstream.lab.files import csv_text
from ldpstream.lab.reproduction.analysis.formulas import communication, publication_variance
from ldpstream.lab.reproduction.analysis.measured import (
    dissimilarity_bias,
    mean_of,
    measured,
    variance_of,
)
from ldpstream.lab.reproduction.studies import StudyStreams
from ldpstream.mechanisms.noise import VarianceRule
from ldpstream.mechanisms.settings import RunOptions, Settings
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.streams.stream import Stream
from ldpstream.streams.synthetic import lns, log, sin

LBU_LPU = "lbu, lpu"
ADAPTIVE = ("lsp", "lbd", "lba", "lpd", "lpa")
EPSILONS = (0.5, 1.0, 2.0)
WINDOWS = (20, 40)
GRID_LABELS = (2, 16, 128, 1024)
GRID_EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
GRID_WINDOWS = (2, 5, 20, 100)
DRAWS = 20_000
SHARES = {2: (0.925, 0.075), 8: (0.4, 0.2, 0.15, 0.1, 0.06, 0.04, 0.03, 0.02)}
"""Frequencies at which the dissimilarity is judged, by number of labels."""
COLUMNS = (
    *("formula", "mechanism", "stream", "epsilon", "window", "m"),
    *("predicted", "measured", "error", "ratio"),
)


class Formula(StrEnum):
    """The formulas that are judged."""

    DISSIMILARITY = "bias of the dissimilarity, in units of V"
    CORRECTED = "the same, with the variance of sampling taken off"
    UNIFORM = "noise of LBU over that of LPU"
    UNIFORM_SAMPLED = "MSE of LBU over that of LPU, which samples"
    WINDOW_MSE = "MSE in a window"
    WINDOW_MSE_AS_USED = "MSE in a window, with the shares that were really used"
    COMMUNICATION = "reports per user and timestamp"


@dataclass(frozen=True)
class FormulaComparison:
    """A formula at one setting: what it predicts, and what a simulation gives."""

    formula: Formula
    mechanism: str
    stream: str
    epsilon: float
    window: int
    m: float | None
    """Publications in a window, as measured; None where the formula has no m."""
    predicted: float
    measured: float
    error: float | None = None
    """The standard error of the measured figure; for None see the repeats."""

    @property
    def ratio(self) -> float | None:
        """Measured over predicted; None where the prediction is 0."""
        return self.measured / self.predicted if self.predicted else None

    def row(self) -> dict[str, object]:
        """Return the comparison as `ldpstream reproduce --json` prints it."""
        return dict(zip(COLUMNS, (*astuple(self), self.ratio), strict=True))


@dataclass(frozen=True)
class Analysis:
    """All comparisons that were made."""

    comparisons: tuple[FormulaComparison, ...]

    def of(self, *formulas: Formula) -> list[FormulaComparison]:
        return [one for one in self.comparisons if one.formula in formulas]

    def to_csv(self) -> str:
        return csv_text(COLUMNS, ((*astuple(one), one.ratio) for one in self.comparisons))


@dataclass(frozen=True)
class FormulaSummary:
    """A formula for one mechanism, over all settings: how measured and predicted compare."""

    formula: Formula
    mechanism: str
    settings: int
    least: float
    median: float
    most: float

    @classmethod
    def of(cls, comparisons: Sequence[FormulaComparison]) -> FormulaSummary:
        first = comparisons[0]
        ratios = [one.measured if one.ratio is None else one.ratio for one in comparisons]
        spread = float(min(ratios)), float(np.median(ratios)), float(max(ratios))
        return cls(first.formula, first.mechanism, len(ratios), *spread)


def summaries(analysis: Analysis) -> list[FormulaSummary]:
    """Return a summary for each formula and mechanism, in the order of the comparisons."""
    groups: dict[tuple[Formula, str], list[FormulaComparison]] = {}
    for one in analysis.comparisons:
        groups.setdefault((one.formula, one.mechanism), []).append(one)
    return [FormulaSummary.of(group) for group in groups.values()]


def settings_grid() -> list[tuple[float, int]]:
    return list(product(EPSILONS, WINDOWS))


def size(repeats: int) -> int:
    """Return the number of steps of `analyse`, for a progress bar."""
    return len(settings_grid()) * 3 * len(ADAPTIVE) * repeats + len(Oracle) + 2 * len(SHARES)


def analyse(
    scope: StudyStreams, repeats: int, seed: int, progress: Callable[[int], None] | None = None
) -> Analysis:
    """Compare every formula with simulations of the literal algorithms."""
    advance = progress or (lambda steps: None)
    found = [*_dissimilarities(scope.users, seed, advance), *_uniform(scope.users, advance)]
    streams = (scope.make(sin), scope.make(log), scope.make(lns))
    for place, (stream, (epsilon, window)) in enumerate(product(streams, settings_grid())):
        seeds = np.random.SeedSequence([seed, place]).spawn(repeats)
        found += _window(stream, epsilon, window, seeds, advance)
    return Analysis(tuple(found))


def _literal(labels: int, users: int, epsilon: float, window: int) -> Settings:
    options = RunOptions(oracle=Oracle.GRR, variance=VarianceRule.PAPER)
    return options.at(labels, users, Epsilon.of(epsilon), window)


def _dissimilarities(
    users: int, seed: int, advance: Callable[[int], None]
) -> Iterator[FormulaComparison]:
    for (labels, shares), sampled in product(SHARES.items(), (False, True)):
        settings = _literal(labels, users, 1.0, 20)
        bias, error, sampling = dissimilarity_bias(
            np.array(shares), settings, sampled=sampled, draws=DRAWS, seed=seed
        )
        name, where = ("lpd, lpa" if sampled else "lbd, lba"), f"{labels} fixed shares"
        yield FormulaComparison(Formula.DISSIMILARITY, name, where, 1.0, 20, None, 0.0, bias, error)
        if sampled:
            rest = bias - sampling
            yield FormulaComparison(Formula.CORRECTED, name, where, 1.0, 20, None, 0.0, rest, error)
        advance(1)


def _uniform(users: int, advance: Callable[[int], None]) -> Iterator[FormulaComparison]:
    """Compare LBU with LPU for every oracle, each at the setting where LPU wins by the least.

    Lemma: V(eps/w, N) > V(eps, N/w), of the noise alone. LPU has the error of sampling besides,
    here of a uniform histogram, the worst case. `predicted` is the bound, 1.
    """
    for oracle in Oracle:
        for formula in (Formula.UNIFORM, Formula.UNIFORM_SAMPLED):
            population = users if formula is Formula.UNIFORM_SAMPLED else None
            ratio, labels, epsilon, window = min(
                (_advantage(oracle, *setting, users, population), *setting)
                for setting in product(GRID_LABELS, GRID_EPSILONS, GRID_WINDOWS)
            )
            where = f"{oracle.value}, {labels} labels (least of the grid)"
            yield FormulaComparison(formula, LBU_LPU, where, epsilon, window, None, 1.0, ratio)
        advance(1)


def _advantage(
    oracle: Oracle, labels: int, epsilon: float, window: int, users: int, population: int | None
) -> float:
    whole = Epsilon.of(epsilon)
    lbu = oracle.collector(labels, Epsilon(whole.nano // window)).mean_variance(users)
    return lbu / oracle.collector(labels, whole).mean_variance(users // window, population)


def _window(
    stream: Stream,
    epsilon: float,
    window: int,
    seeds: Sequence[np.random.SeedSequence],
    advance: Callable[[int], None],
) -> Iterator[FormulaComparison]:
    settings = _literal(len(stream.domain), stream.users, epsilon, window)
    truth = [one.counts / stream.users for one in stream.snapshots(np.random.default_rng(0))]
    variance = variance_of(settings, np.stack(truth))
    for mechanism in ADAPTIVE:
        runs = []
        for one in seeds:
            runs.append(measured(stream, mechanism, settings, np.random.default_rng(one)))
            advance(1)
        mean = mean_of(runs)
        noise = publication_variance(mechanism, mean.m, window, variance)

        def compared(formula: Formula, predicted: float, found: float) -> FormulaComparison:
            where = (mechanism, stream.name, epsilon, window, mean.m)  # noqa: B023 - used at once
            return FormulaComparison(formula, *where, predicted, found)

        yield compared(Formula.WINDOW_MSE, noise + mean.data_term, mean.mse)
        used = mean.used_variance + mean.data_term
        yield compared(Formula.WINDOW_MSE_AS_USED, used, mean.mse)
        yield compared(Formula.COMMUNICATION, communication(mechanism, mean.m, window), mean.cfpu)
