"""Mechanisms that wrap another one, and say more about the truth from all of its tallies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.mechanisms.mechanism import Mechanism, Publication, Step
from ldpstream.mechanisms.messages import Ask, Release, Tally, pooled_tally
from ldpstream.oracles.collector_half import sampling
from ldpstream.refine.carried import Carried
from ldpstream.refine.cohorts import Fleet
from ldpstream.refine.consistency import Consistency
from ldpstream.refine.filter import Filter
from ldpstream.refine.intervals import hull, normal_interval
from ldpstream.refine.packing import pack, unpack


class Observed(Mechanism):
    """Another mechanism's releases, each with an error and an interval that hold now.

    The variance of a release is that of the moment it was published. So a filter follows the stream
    beside the mechanism, from all tallies, and estimates how far the truth may have moved since
    (`Carried`). This is post-processing of what was reported anyway: it costs no privacy.
    """

    def __init__(
        self, inner: Mechanism, consistency: Consistency, reshuffle: int | None = None
    ) -> None:
        super().__init__(inner.division, inner.noise, pool=inner.pool, consistency=consistency)
        self.inner = inner
        self.fleet = Fleet(inner.noise.population, inner.returns_after, reshuffle)
        self.filter = Filter(inner.noise.labels, self.fleet)
        self.carried: Carried | None = None
        """The last publication."""

    def decide(self, t: int) -> Step:
        elapsed = t - self.inner.state.t
        heard: list[Tally] = []
        release = yield from self._overhear(self.inner.step(t), heard)
        if heard:
            self.filter.pass_time(elapsed - 1)
            measured = pooled_tally(heard)
            sampled = sampling(measured.reports, self.noise.population)
            self.filter.update(measured.estimate, measured.variance, sampled)
        else:
            self.filter.pass_time(elapsed)
        judged = self.judge(release, heard)
        last = self.state.release.bounds
        # Silence only widens: a slope that was seen before it is no knowledge of what came after.
        if heard or last is None or judged.bounds is None:
            return judged
        return replace(judged, bounds=hull(last, judged.bounds))

    def judge(self, release: Release, heard: Sequence[Tally]) -> Release:
        """Return the same values, with their error by now and an interval for the truth.

        `heard` has the tallies of this timestamp; that of a publication is the last.
        """
        if release.fresh:
            published = pooled_tally(heard) if self.pool else heard[-1]
            self.carried = Carried.of(published.estimate, published.variance, self.filter)
            bounds = normal_interval(published.estimate, published.variance)
            return replace(release, bounds=_possible(bounds))
        if self.carried is None or self.filter.tallies < 2:
            return replace(release, bounds=_anywhere(self.filter))
        centre, variance = self.carried.now(self.filter)
        return _carried_over(release, centre, variance, normal_interval(centre, variance))

    def _overhear(self, step: Step, heard: list[Tally]) -> Step:
        """Relay asks and tallies; append to `heard` the tallies that have reports."""
        try:
            ask = next(step)
            while True:
                tally = yield ask
                if tally:
                    heard.append(self._reweighed(ask, tally))
                ask = step.send(tally)
        except StopIteration as done:
            release: Release = done.value
            return release

    def _reweighed(self, ask: Ask, tally: Tally) -> Tally:
        """Return the tally with its variance at the frequencies known so far.

        The tally's own variance rests on its own estimate: a bin that came out low by chance would
        seem more certain than it is.
        """
        variance = self.noise.bin_variance(ask.epsilon, tally, self.filter.estimate)
        return Tally(tally.estimate, variance, tally.reports)

    @property
    def publications(self) -> tuple[Publication, ...]:
        return self.inner.publications

    def save(self) -> dict[str, Any]:
        bounds = self.state.release.bounds
        return super().save() | {
            "inner": self.inner.save(),
            "filter": self.filter.save(),
            "carried": self.carried and self.carried.save(),
            "bounds": bounds and [pack(end) for end in bounds],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        super().restore(saved)
        self.inner.restore(saved["inner"])
        self.filter.restore(saved["filter"])
        carried = saved.get("carried")
        self.carried = Carried.restored(carried) if carried else None
        if saved.get("bounds"):
            low, high = map(unpack, saved["bounds"])
            release = replace(self.state.release, bounds=(low, high))
            self.state = replace(self.state, release=release)


class Filtered(Observed):
    """A mechanism that releases a filter's estimate from all tallies so far, not the last tally.

    Over uniform population division this is LPF. Over distribution or absorption both tallies of a
    timestamp count, each by its variance.
    """

    def judge(self, release: Release, heard: Sequence[Tally]) -> Release:
        estimate, variance = self.filter.estimate, self.filter.variance
        bounds = self.filter.interval()
        if not heard and self.state.release.t:
            # A slope is a good guess for a moment, not for the months that a fleet may be silent.
            last = replace(self.state.release, t=release.t, fresh=False)
            return _carried_over(last, estimate, variance, bounds)
        return Release(release.t, estimate, variance, bool(heard), _possible(bounds))


def _carried_over(
    release: Release, centre: Floats, variance: Floats, bounds: tuple[Floats, Floats]
) -> Release:
    """Return an earlier release with its error, if the truth is now at `centre` with `variance`."""
    error = np.minimum(variance + (release.values - centre) ** 2, 1.0)
    return replace(release, variance=error, bounds=_possible(bounds))


def _possible(bounds: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Clip an interval to [0, 1], where the truth must be."""
    low, high = bounds
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def _anywhere(smooth: Filter) -> tuple[Floats, Floats]:
    """Return [0, 1] for each label: one tally says nothing about how the stream moves."""
    return np.zeros(smooth.labels), np.ones(smooth.labels)
