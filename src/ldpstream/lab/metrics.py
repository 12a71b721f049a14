"""Metrics of a run: error against the truth, event monitoring, communication."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from statistics import fmean

import numpy as np

from ldpstream.arrays import Flags, Floats
from ldpstream.mechanisms.queries import DistributionQuery, Query
from ldpstream.numeric.range import QUANTILES

MRE_FLOOR = 0.001
"""The least value that an error is taken relative to (docs/paper-corrections.md, 12)."""

RARE, BIG = 0.01, 0.1
"""The mean true shares below which a label is rare, and above which it is big."""
JUMP, JUMP_STEPS = 0.02, 6
"""A step of a label is a jump if it is above JUMP and above JUMP_STEPS of its median steps."""
AFTER_JUMP = (1, 2)
"""The timestamps after a jump that have a coverage of their own."""

ROC_RATES = np.linspace(0, 1, 101)
"""The false-positive rates at which a ROC is given."""


@dataclass(frozen=True)
class Metrics:
    """The figures of one run. Errors are averaged over timestamps and labels."""

    mre: float
    """mean |r - c| / max(c, MRE_FLOOR)."""
    mae: float
    mse: float
    cfpu: float
    """Communication frequency per user: reports / (users x timestamps)."""
    auc: float
    """Area under the ROC of event monitoring, pooled over labels; 0.5 where there is no event.

    Thresholds differ between labels, and so does the noise above them: where many labels are rare,
    pooling compares labels rather than moments. Then look at `auc_per_label`.
    """
    publications: int
    covered: float
    """The same as `coverage`, under its name in version 0.1.0."""
    coverage: float
    """Share of true frequencies inside their intervals, which are meant to hold 0.9 of them.

    NaN, as those below, where there are none.
    """
    coverage_rare: float
    """Coverage of labels with a mean true share below RARE."""
    coverage_middle: float
    coverage_big: float
    """Coverage of labels with a mean true share above BIG."""
    coverage_after_jump: float
    """Coverage of a label 1 and 2 timestamps after its last jump."""
    auc_per_label: float = math.nan
    """Mean over the labels that have events of the area under each label's own ROC."""
    revised_mse: float = math.nan
    """Of the revised history (`mechanisms/revision.py`), of mechanisms with a filter."""
    revised_coverage: float = math.nan
    p50_mae: float = math.nan
    """Of a distribution: the mean absolute error of its median, as a share of the range."""
    p99_mae: float = math.nan

    def plain(self) -> dict[str, float | None]:
        """Return the figures as plain JSON, which has no NaN."""
        return {name: or_none(figure) for name, figure in asdict(self).items()}


def or_none(figure: float) -> float | None:
    """Return None for NaN: there is no such figure."""
    return None if math.isnan(figure) else figure


def measure(
    truth: Floats,
    released: Floats,
    intervals: tuple[Floats, Floats],
    *,
    users: int,
    reports: int,
    publications: int,
    unit: float = 1.0,
) -> Metrics:
    """Return all metrics of a run from its T x d tables: truth, releases, ends of intervals.

    The values are frequencies, or numbers in a range of width `unit`, which may be negative.
    """
    errors = np.abs(released - truth)
    inside = _inside(truth, intervals)
    # A number has one column and no size; shares are those of two labels or more.
    sizes = truth.mean(axis=0) if truth.shape[1] > 1 else np.array([math.nan])
    coverage = _share(inside)
    return Metrics(
        mre=float(np.mean(errors / np.maximum(np.abs(truth), MRE_FLOOR * unit))),
        mae=float(np.mean(errors)),
        mse=float(np.mean(errors**2)),
        cfpu=reports / (users * len(truth)),
        auc=auc(*events(truth, released)),
        publications=publications,
        covered=coverage,
        coverage=coverage,
        coverage_rare=_share(inside[:, sizes < RARE]),
        coverage_middle=_share(inside[:, (sizes >= RARE) & (sizes <= BIG)]),
        coverage_big=_share(inside[:, sizes > BIG]),
        coverage_after_jump=_share(inside[after_jumps(truth / unit)]),
        auc_per_label=_mean(auc(*one) for one in events_by_label(truth, released)),
    )


def measure_answers(
    query: Query,
    truth: Floats,
    released: Floats,
    intervals: tuple[Floats, Floats],
    *,
    users: int,
    reports: int,
    publications: int,
) -> Metrics:
    """Return all metrics of answers to a query.

    Of a distribution, errors are those of its bins' shares, and coverage is that of its quantiles.
    """
    shares = query.shares
    low, high = intervals
    figures = measure(
        truth[:, shares],
        released[:, shares],
        (low[:, shares], high[:, shares]),
        users=users,
        reports=reports,
        publications=publications,
        unit=query.unit,
    )
    if not isinstance(query, DistributionQuery):
        return figures
    coverage = covered(
        truth[:, query.quantiles], (low[:, query.quantiles], high[:, query.quantiles])
    )
    errors = np.abs(released - truth)[:, query.quantiles].mean(axis=0) / (query.high - query.low)
    of = dict(zip(QUANTILES, errors.tolist(), strict=True))
    return replace(
        figures, covered=coverage, coverage=coverage, p50_mae=of["p50"], p99_mae=of["p99"]
    )


def _inside(truth: Floats, intervals: tuple[Floats, Floats]) -> Floats:
    """Return 1 where the truth lies in its interval and 0 elsewhere; NaN if none are stated."""
    low, high = intervals
    if not np.isfinite(low).all():
        return np.full_like(truth, math.nan)
    return ((low <= truth) & (truth <= high)).astype(np.float64)


def covered(truth: Floats, intervals: tuple[Floats, Floats]) -> float:
    """Return the share of true values inside their intervals."""
    return _share(_inside(truth, intervals))


def _mean(figures: Iterable[float]) -> float:
    found = list(figures)
    return fmean(found) if found else math.nan


def _share(inside: Floats) -> float:
    return float(inside.mean()) if inside.size else math.nan


def after_jumps(truth: Floats) -> Flags:
    """Return whether each value (T x d) comes 1 or 2 timestamps after the last jump of its label.

    >>> share = np.array([[0.1, 0.1, 0.3, 0.3, 0.3, 0.3, 0.1, 0.4, 0.4]]).T
    >>> after_jumps(share).astype(int).T.tolist()
    [[0, 0, 0, 1, 1, 0, 0, 0, 1]]
    """
    jumps = np.zeros(truth.shape, np.bool_)
    if len(truth) > 1:
        steps = np.abs(np.diff(truth, axis=0))
        jumps[1:] = (steps > JUMP) & (steps > JUMP_STEPS * np.median(steps, axis=0))
    after = np.zeros_like(jumps)
    for late in AFTER_JUMP:
        after[late:] |= jumps[:-late]
    return after & ~jumps


def events(truth: Floats, released: Floats) -> tuple[Flags, Floats]:
    """Return above-threshold events and their scores, pooled over labels and timestamps.

    Each label has a threshold of its own, 0.75 (max - min) + min of its true frequency; the score
    is how far the release lies above it (docs/paper-corrections.md, 13). A label that never moves
    has no events.
    """
    low, high = truth.min(axis=0), truth.max(axis=0)
    moving = high > low
    thresholds = (0.75 * (high - low) + low)[moving]
    happened = truth[:, moving] > thresholds
    scores = released[:, moving] - thresholds
    return happened.ravel(), scores.ravel()


def events_by_label(truth: Floats, released: Floats) -> Iterator[tuple[Flags, Floats]]:
    """Yield the events and scores of each label that moves, apart from each other."""
    for label in range(truth.shape[1]):
        own = slice(label, label + 1)
        happened, scores = events(truth[:, own], released[:, own])
        if happened.any():
            yield happened, scores


def roc_per_label(truth: Floats, released: Floats) -> Floats | None:
    """Return the mean of all labels' own ROCs; None without an event."""
    curves = [roc(*one) for one in events_by_label(truth, released)]
    return np.mean([curve for curve in curves if curve is not None], axis=0) if curves else None


def roc(happened: Flags, scores: Floats) -> Floats | None:
    """Return the share of events found at false-positive rates 0, .01 .. 1; None without an event.

    >>> curve = roc(np.array([False, True, True, False]), np.array([0.1, 0.1, 0.7, 0.0]))
    >>> curve[[0, 25, 50, 100]].tolist()
    [0.5, 0.75, 1.0, 1.0]
    """
    positives = int(happened.sum())
    negatives = len(happened) - positives
    if not positives or not negatives:
        return None
    levels, places = np.unique(-scores, return_inverse=True)
    found = np.bincount(places[happened], minlength=len(levels)).cumsum() / positives
    false = np.bincount(places[~happened], minlength=len(levels)).cumsum() / negatives
    # Where the curve is vertical, interp takes the last point, which has the best rate.
    curve: Floats = np.interp(ROC_RATES, np.append(0.0, false), np.append(0.0, found))
    return curve


def auc(happened: Flags, scores: Floats) -> float:
    """Return the area under the ROC: Pr[an event scores above a non-event], ties counted half.

    >>> auc(np.array([False, True, True]), np.array([0.1, 0.1, 0.7]))
    0.75
    """
    positives = int(happened.sum())
    negatives = len(happened) - positives
    if not positives or not negatives:
        return 0.5
    _, places, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(sizes) - (sizes - 1) / 2
    rank_sum = float(mean_ranks[places][happened].sum())
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)
