"""Metrics of a run: error against the truth, event monitoring, communication."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldpstream.arrays import Flags, Floats

MRE_FLOOR = 0.001
"""The least value that an error is taken relative to (docs/paper-corrections.md, 12)."""

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
    """Area under the pooled ROC of event monitoring; 0.5 where there is no event to find."""
    publications: int
    covered: float
    """Share of true frequencies inside their intervals, which are meant to hold 0.9 of them."""


def measure(
    truth: Floats,
    released: Floats,
    *,
    users: int,
    reports: int,
    publications: int,
    covered: float,
    unit: float = 1.0,
) -> Metrics:
    """Return all metrics of a run from its T x d tables of true and released values.

    The values are frequencies, or numbers in a range of width `unit`, which may be negative.
    """
    errors = np.abs(released - truth)
    return Metrics(
        mre=float(np.mean(errors / np.maximum(np.abs(truth), MRE_FLOOR * unit))),
        mae=float(np.mean(errors)),
        mse=float(np.mean(errors**2)),
        cfpu=reports / (users * len(truth)),
        auc=auc(*events(truth, released)),
        publications=publications,
        covered=covered,
    )


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
