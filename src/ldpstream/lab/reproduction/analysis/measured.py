"""What simulations give in place of the formulas: runs that remember what they asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.lab.fleet import LabFleet
from ldpstream.lab.reproduction.analysis.formulas import V
from ldpstream.lab.simulation import run
from ldpstream.mechanisms.messages import Ask, Purpose, Tally
from ldpstream.mechanisms.registry import build
from ldpstream.mechanisms.settings import Settings
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.streams.stream import Snapshot, Stream


@dataclass
class RecordingFleet:
    """A simulated fleet that remembers which publications it was asked for."""

    fleet: LabFleet
    publications: list[tuple[int, Ask]] = field(default_factory=list)

    @property
    def reports(self) -> int:
        return self.fleet.reports

    def at(self, t: int, snapshot: Snapshot) -> Callable[[Ask], Tally]:
        answer = self.fleet.at(t, snapshot)

        def recorded(ask: Ask) -> Tally:
            if ask.purpose is Purpose.PUBLICATION:
                self.publications.append((t, ask))
            return answer(ask)

        return recorded


@dataclass(frozen=True)
class Measured:
    """One run, in the quantities that the analysis speaks of."""

    m: float
    """Publications in a window, on average."""
    mse: float
    cfpu: float
    data_term: float
    """The mean of (c_t - c_l)^2, with l the last publication at or before t."""
    used_variance: float
    """The mean over t of V for the epsilon and the users that the publication in force used."""


def measured(
    stream: Stream, mechanism: str, settings: Settings, rng: np.random.Generator
) -> Measured:
    """Run a mechanism once over a stream, from its start."""
    built = build(mechanism, settings)
    fleet = RecordingFleet(LabFleet.of(built, rng))
    result = run(stream, built, rng, fleet=fleet)
    times = np.array([t for t, _ in fleet.publications]) - 1
    last = np.searchsorted(times, np.arange(stream.timestamps), side="right") - 1
    truth, shown = result.truth, last >= 0
    held = truth[times[np.maximum(last, 0)]]
    variance = variance_of(settings, truth)
    used = [
        variance(ask.epsilon.nano / settings.epsilon.nano, ask.users / settings.users)
        for _, ask in fleet.publications
    ]
    return Measured(
        m=len(times) * settings.window / stream.timestamps,
        mse=float(np.mean((result.released - truth)[shown] ** 2)),
        cfpu=result.metrics.cfpu,
        data_term=float(np.mean((truth - held)[shown] ** 2)),
        used_variance=float(np.mean(np.array(used)[last[shown]])),
    )


def variance_of(settings: Settings, truth: Floats) -> V:
    """Return V for these settings; sampling counts at the mean concentration of the truth."""
    oracle = settings.oracle or Oracle.GRR
    assert isinstance(oracle, Oracle)
    concentration = float(np.mean(np.sum(truth**2, axis=1)))

    def variance(share_of_epsilon: float, share_of_users: float) -> float:
        epsilon = Epsilon(max(1, round(share_of_epsilon * settings.epsilon.nano)))
        users = max(1, round(share_of_users * settings.users))
        collector = oracle.collector(settings.labels, epsilon)
        return collector.mean_variance(users, settings.users, concentration)

    return variance


def dissimilarity_bias(
    frequencies: Floats, settings: Settings, *, sampled: bool, draws: int, seed: int
) -> tuple[float, float, float]:
    """Return the bias of the dissimilarity, its standard error, and what sampling adds to it.

    All are in units of V, the variance that the estimator subtracts. `sampled` is population
    division: floor(N/(2w)) users are drawn and report with all of epsilon; otherwise everyone
    reports with eps/(2w). The last release is the truth, so that the true dissimilarity is 0.
    """
    rng = np.random.default_rng(seed)
    oracle = settings.oracle or Oracle.GRR
    assert isinstance(oracle, Oracle)
    labels, users = settings.labels, settings.users
    parts = 2 * settings.window
    asked = users // parts if sampled else users
    epsilon = settings.epsilon if sampled else Epsilon(settings.epsilon.nano // parts)
    collector, lab = oracle.collector(labels, epsilon), oracle.lab(labels, epsilon)
    counts = np.round(frequencies * users).astype(np.int64)
    counts[0] += users - counts.sum()
    noise = collector.mean_variance(asked)
    truth = counts / users
    found = np.empty(draws)
    for draw in range(draws):
        drawn = rng.multivariate_hypergeometric(counts, asked) if sampled else counts
        estimate = collector.estimate(lab.sample_support(drawn, rng))
        found[draw] = np.mean((estimate - truth) ** 2) - noise
    concentration = float(np.sum(truth**2))
    sampling = collector.mean_variance(asked, users, concentration) - noise
    error = float(found.std(ddof=1) / np.sqrt(draws))
    return float(found.mean()) / noise, error / noise, sampling / noise


def mean_of(runs: Sequence[Measured]) -> Measured:
    """Return the mean of several runs, quantity by quantity."""
    names = Measured.__dataclass_fields__
    return Measured(
        **{name: float(np.mean([getattr(one, name) for one in runs])) for name in names}
    )
