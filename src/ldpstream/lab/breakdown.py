"""Simulated breakdowns: figures of groups of users beside those of the fleet, and their errors.

What becomes of a group's reports is decided by the code of the collector, `Breakdown`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from statistics import fmean

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.errors import Mistake, Problem
from ldpstream.lab.metrics import Metrics, measure_answers, or_none
from ldpstream.lab.parts import PartedSnapshot, PartedUsers, Parts, parted
from ldpstream.lab.selection import SlotSelector
from ldpstream.lab.simulation import Progress, check_repeats, settings_of
from ldpstream.mechanisms.breakdown import Attendance, Breakdown, Group
from ldpstream.mechanisms.mechanism import drive
from ldpstream.mechanisms.messages import Ask, Release, Tally
from ldpstream.mechanisms.noise import Noise
from ldpstream.mechanisms.queries import Query
from ldpstream.mechanisms.registry import build
from ldpstream.mechanisms.settings import RunOptions, Settings
from ldpstream.oracles.collector_half import Support
from ldpstream.privacy.accountant import Accountant
from ldpstream.protocol.terms import SelectionMethod
from ldpstream.streams.stream import Stream

FLEET: Group = ("", "")
"""In place of a group: the whole fleet."""
FIGURES = ("mse", "coverage", "p50_mae", "p99_mae")


@dataclass
class _Series:
    """The releases of the fleet or of a group over time, beside the truth."""

    truth: list[Floats] = field(default_factory=list)
    released: list[Release] = field(default_factory=list)
    alone: list[Release] = field(default_factory=list)

    def measured(self, rows: Sequence[Release], query: Query, facts: Mapping[str, int]) -> Metrics:
        """Return the figures of releases, one for each time of the truth."""
        low, high = zip(*(one.interval for one in rows), strict=True)
        values, ends = np.array([one.values for one in rows]), (np.array(low), np.array(high))
        return measure_answers(query, np.array(self.truth), values, ends, **facts)


@dataclass(frozen=True)
class PartedRun:
    """The figures of one run: those of the whole fleet, and of each group."""

    released: Mapping[Group, Metrics]
    alone: Mapping[Group, Metrics]
    """Of the groups' own mechanisms, before their figures are made to add up."""


class _Fleet:
    """Simulated devices with slots, whose reports tell their combination of attributes."""

    def __init__(self, settings: Settings, noise: Noise, rng: np.random.Generator) -> None:
        self._accountant = Accountant(settings.users, settings.epsilon, settings.window)
        self._selector = SlotSelector(settings.users, settings.window, rng)
        self._noise, self._rng = noise, rng
        self.reports = 0
        self.heard: Sequence[Support] = ()
        """The counted reports of each combination at the last timestamp."""

    def at(self, t: int, snapshot: PartedSnapshot) -> Callable[[Ask], Tally]:
        def answer(ask: Ask) -> Tally:
            users = self._selector.select(t, ask)
            self._accountant.charge(t, users, ask.epsilon)
            self.reports += len(users)
            held, lab = snapshot.counts_by_part(users, self._rng), self._noise.lab(ask.epsilon)
            self.heard = [lab.sample_support(self._noise.inputs(one), self._rng) for one in held]
            return self._noise.tally(ask.epsilon, reduce(add, self.heard))

        return answer


def run_parted(
    settings: Settings,
    stream: PartedUsers,
    mechanism: str,
    rng: np.random.Generator,
    progress: Progress = lambda done: None,
) -> PartedRun:
    """Run a mechanism over a stream, and its breakdown by the attributes of the users."""
    attributes, query, whole = stream.parts.attributes, settings.query, build(mechanism, settings)
    members = {group: [*attributes.members(*group)] for group in attributes.groups}
    parts = Breakdown(
        attributes,
        query,
        settings.users,
        lambda users: build(mechanism, replace(settings, users=max(users, 2 * settings.window))),
    )
    fleet, heard = _Fleet(settings, whole.noise, rng), Attendance()
    series: defaultdict[Group, _Series] = defaultdict(_Series)
    for t, snapshot in enumerate(stream.snapshots(rng), 1):
        raw = drive(whole.step(t), fleet.at(t, snapshot))
        supports = {
            group: reduce(add, (fleet.heard[one] for one in combinations))
            for group, combinations in members.items()
        }
        counted = {group: support.reports for group, support in supports.items()}
        heard.add(str(t), t, settings.window, counted)
        parts.expect(heard.at(t))
        tallies = {
            group: parts.noise_of(group).tally(settings.epsilon, support)
            for group, support in supports.items()
            if group in parts
        }
        parts.step(t, tallies)
        series[FLEET].truth.append(query.truth(snapshot.counts))
        series[FLEET].released.append(query.shown(raw, whole.noise))
        for one in parts.shown(raw, heard.at(t)):
            group = one.attribute, one.value
            held = snapshot.parts[members[group]].sum(axis=0)
            series[group].truth.append(query.truth(held))
            series[group].released.append(one.release)
            series[group].alone.append(parts.alone(group))
        progress(1)
    facts = {"users": settings.users, "reports": fleet.reports, "publications": 0}
    released = {group: one.measured(one.released, query, facts) for group, one in series.items()}
    del series[FLEET]  # it is released as it is
    alone = {group: one.measured(one.alone, query, facts) for group, one in series.items()}
    return PartedRun(released, alone)


def simulate_parted(
    stream: Stream,
    mechanism: str,
    attributes: Sequence[str],
    *,
    epsilon: float | str,
    window: int,
    options: RunOptions,
    shift: int = 1,
    repeats: int = 1,
    seed: int = 0,
    progress: Progress = lambda done: None,
) -> list[dict[str, object]]:
    """Return a row for the fleet and for each group: error and coverage, as means of all repeats.

    Groups hold values that are `shift` labels apart, 0 for the same ones. Figures named `..._alone`
    are of the groups' own filters, before they are made to add up.

    >>> from ldpstream.streams.synthetic import sin
    >>> rows = simulate_parted(sin(users=20_000, timestamps=60), "lpf", ["country=de:0.7"],
    ...     epsilon=1, window=10, options=RunOptions.read(selection="slots"))
    >>> [row["group"] for row in rows], 0.7 < rows[1]["coverage"] <= 1
    (['', 'country:de', 'country:other'], True)
    """
    check_repeats(repeats, seed)
    if options.selection is not SelectionMethod.SLOTS or options.levels is not None:
        given = "levels" if options.levels is not None else options.selection
        raise Mistake(Problem.OPTION, option="--attribute with", given=given, expected="slots only")
    settings = settings_of(stream, epsilon, window, options)
    users = parted(stream, Parts.read(attributes), shift)
    runs = [
        run_parted(settings, users, mechanism, np.random.default_rng(sequence), progress)
        for sequence in np.random.SeedSequence(seed).spawn(repeats)
    ]
    return [_row(settings, users, mechanism, group, runs, seed) for group in runs[0].released]


def _row(
    settings: Settings,
    stream: PartedUsers,
    mechanism: str,
    group: Group,
    runs: Sequence[PartedRun],
    seed: int,
) -> dict[str, object]:
    attributes, combined = stream.parts.attributes, stream.parts.combined
    share = 1.0 if group == FLEET else float(combined[[*attributes.members(*group)]].sum())
    alone = [one.alone[group] for one in runs if group in one.alone]
    return {
        "stream": stream.name,
        "mechanism": mechanism,
        "epsilon": float(settings.epsilon),
        "window": settings.window,
        "users": settings.users,
        "timestamps": stream.timestamps,
        "repeats": len(runs),
        "seed": seed,
        "group": "" if group == FLEET else ":".join(group),
        "share": share,
        **_means([one.released[group] for one in runs]),
        **{f"{name}_alone": figure for name, figure in _means(alone).items()},
    }


def _means(runs: Sequence[Metrics]) -> dict[str, float | None]:
    """Return the mean figures of some runs; None where there are none, as of the fleet alone."""
    return {
        name: or_none(fmean(getattr(one, name) for one in runs)) if runs else None
        for name in FIGURES
    }
