"""Mechanisms that wrap another one, and say more about the truth from all of its tallies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.mechanisms.mechanism import Mechanism, Publication, Step
from ldpstream.mechanisms.messages import Release, Tally, pooled_tally
from ldpstream.mechanisms.noise import reweighed
from ldpstream.refine.carried import Carried
from ldpstream.refine.cohorts import ReportingFleet
from ldpstream.refine.consistency import Consistency
from ldpstream.refine.filter import Filter
from ldpstream.refine.intervals import hull, normal_interval
from ldpstream.refine.packing import pack, unpack
from ldpstream.refine.relabelling import Relabelling


class Observed(Mechanism):
    """Another mechanism's releases, each with an error and an interval that hold now.

    The variance of a release is that of the moment it was published. So a filter follows the stream
    beside the mechanism, from all tallies, and estimates how far the truth may have moved since
    (`Carried`). This is post-processing of what was reported anyway: it costs no privacy.
    """

    def __init__(
        self,
        inner: Mechanism,
        consistency: Consistency,
        reshuffle: int | None = None,
        returns_after: int | None = None,
    ) -> None:
        super().__init__(inner.division, inner.noise, pool=inner.pool, consistency=consistency)
        self.inner = inner
        returns_after = returns_after or inner.returns_after
        self.fleet = ReportingFleet(inner.noise.population, returns_after, reshuffle)
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
            sampled = measured.sampled_from(self.noise.population)
            lasting = measured.lasting
            self.filter.update(measured.estimate, measured.variance - lasting, sampled, lasting)
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
                    known = self.filter.estimate
                    heard.append(reweighed(tally, self.noise, ask.epsilon, known))
                ask = step.send(tally)
        except StopIteration as done:
            release: Release = done.value
            return release

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

    def _adopt(self, saved: dict[str, Any], move: Relabelling) -> list[str]:
        anew = self._adopt_state(saved, move) + self.inner._adopt(saved, move)
        known = saved.get("filter", {"labels": len(move.targets)})
        self.filter.adopt(known | {"clock": saved["t"]}, move)
        if "filter" not in saved:
            return [*anew, "the filter: the mechanism of before had none"]
        carried = saved.get("carried")
        self.carried = Carried.restored(carried).relabelled(move, self.filter) if carried else None
        if saved.get("bounds"):
            low, high = map(unpack, saved["bounds"])
            wide = replace(Release.from_json(saved["release"]), bounds=(low, high))
            self.state = replace(self.state, release=wide.relabelled(move))
        if saved["window"] != self.window and self.inner.returns_after:
            return [*anew, f"the cohorts: window {saved['window']} became {self.window}"]
        return anew


class Filtered(Observed):
    """A mechanism that releases a filter's estimate from all tallies so far, not the last tally.

    Over uniform population division this is LPF. Over distribution or absorption both tallies of a
    timestamp count, each by its variance.
    """

    def judge(self, release: Release, heard: Sequence[Tally]) -> Release:
        estimate, variance = self.filter.estimate, self.filter.variance
        if not self.filter.tallies:
            nothing = np.ones_like(variance)
            return Release(release.t, estimate, nothing, False, _anywhere(self.filter))
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
    """Return [0, 1] for each label: fewer than two tallies do not tell how the stream moves."""
    return np.zeros(smooth.labels), np.ones(smooth.labels)
