"""Figures of groups of devices, such as those of a country, beside the figures of the fleet.

A group is a public attribute and a value of it. It has a mechanism of its own, that of the stream
in a fleet as large as the group, which is sent the tallies of the group's reports. So whatever
composes with the stream's mechanism does with the groups'. It is post-processing: a report counts
in its group and in the fleet, and no device is asked more. docs/breakdowns.md has the measurements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.mechanisms.mechanism import Mechanism, drive
from ldpstream.mechanisms.messages import Ask, Release, Tally
from ldpstream.mechanisms.noise import Noise
from ldpstream.mechanisms.queries import DistributionQuery, Query
from ldpstream.protocol.attributes import OTHER, Attribute, Attributes
from ldpstream.refine.reconciliation import PartFigures, reconciled
from ldpstream.refine.relabelling import Relabelling

Group = tuple[str, str]
"""The name of an attribute, and a value of it."""
OFF = 0.1
"""The population of a group's mechanism is changed when it is off by more than this part of it."""


@dataclass(frozen=True)
class GroupRelease:
    """The figures of one group, or of several small ones of an attribute that are merged."""

    attribute: str
    value: str
    share: float
    """The share of the fleet's reports in the last window."""
    devices: int
    """How many devices of it were heard in the last window."""
    release: Release
    merged: tuple[str, ...] = ()
    """The values that are merged under `OTHER`, if any are."""

    def to_json(self) -> dict[str, Any]:
        """Return what a release of the collector says of the group."""
        shown = self.release.to_json()
        return {
            "attribute": self.attribute,
            "value": self.value,
            "share": self.share,
            "devices": self.devices,
            **{part: shown[part] for part in ("values", "variance", "low", "high")},
            **({"merged": list(self.merged)} if self.merged else {}),
        }


class Attendance:
    """The groups that the reports of the last window came from: a device reports once in it.

    >>> heard = Attendance()
    >>> heard.add("1", 1, 2, {("country", "de"): 3})
    >>> heard.add("2", 2, 2, {("country", "de"): 4})
    >>> heard.at(2)["country", "de"], heard.at(3)["country", "de"]
    (7, 4)
    """

    def __init__(self) -> None:
        self._rounds: dict[str, tuple[int, int, Mapping[Group, int]]] = {}

    def add(self, name: str, t: int, window: int, reports: Mapping[Group, int]) -> None:
        """Count the reports of a round; it may be counted again."""
        self._rounds[name] = t, window, reports

    def at(self, t: int) -> Counter[Group]:
        """Return how many devices of each group were heard in the window that ends with t."""
        self._rounds = {name: one for name, one in self._rounds.items() if one[0] > t - one[1]}
        heard: Counter[Group] = Counter()
        for _, _, reports in self._rounds.values():
            heard.update(reports)
        return heard


class Breakdown:
    """The mechanisms of all groups of a stream, from the first report of each.

    `make` returns a mechanism at t = 0 for a population.
    """

    def __init__(
        self,
        attributes: Attributes,
        query: Query,
        population: int,
        make: Callable[[int], Mechanism],
    ) -> None:
        self.attributes = attributes
        self.population = population
        """That of the whole fleet."""
        self._query, self._make = query, make
        self._mechanisms: dict[Group, Mechanism] = {}

    def noise_of(self, group: Group) -> Noise:
        """Return how the group's reports are read."""
        return self._mechanisms[group].noise

    def __contains__(self, group: Group) -> bool:
        """Return whether anything was heard of a group, ever."""
        return group in self._mechanisms

    def expect(self, heard: Mapping[Group, int]) -> None:
        """Let each group that was heard have a mechanism for as many devices as it stands for."""
        for attribute in self.attributes.each:
            sizes = {
                (attribute.name, value): heard.get((attribute.name, value), 0)
                for value in attribute.values
            }
            total = sum(sizes.values())
            for group, size in sizes.items():
                if size:
                    self._expect(group, round(self.population * size / total))

    def _expect(self, group: Group, population: int) -> None:
        known = self._mechanisms.get(group)
        if known is None:
            self._mechanisms[group] = self._make(population)
        elif abs(known.noise.population - population) > OFF * population:
            now = self._make(population)
            if now.noise.population != known.noise.population:
                now.adopt(known.save())
                self._mechanisms[group] = now

    def step(self, t: int, tallies: Mapping[Group, Tally]) -> None:
        """Let the mechanism of each group that is known take in the tally of timestamp t."""
        for group, mechanism in self._mechanisms.items():
            drive(mechanism.step(t), _answer_with(tallies[group]))

    def shown(
        self, total: Release, heard: Mapping[Group, int], least: int = 0
    ) -> list[GroupRelease]:
        """Return what is released of the groups beside `total`, the raw release of the fleet.

        Groups of fewer than `least` devices in the last window are merged, and those without any
        are left out, as is an attribute of which nothing is left to be told apart. So is one with a
        group that has no tally yet: the others would be made to add up without it.
        """
        return [
            one
            for attribute in self.attributes.each
            for one in self._of_attribute(attribute, total, heard, least)
        ]

    def _of_attribute(
        self, attribute: Attribute, total: Release, heard: Mapping[Group, int], least: int
    ) -> Iterator[GroupRelease]:
        name = attribute.name
        sizes = {
            value: heard[name, value] for value in attribute.values if heard.get((name, value))
        }
        small = merged(sizes, least)
        if len(small) == len(sizes) or not all((name, value) in self for value in sizes):
            return
        figures, shares = self._consistent(name, sizes, total)
        told, heard_of = [*sizes], np.array([*sizes.values()])
        shown = {value: [row] for row, value in enumerate(told) if value not in small}
        if small:
            shown[OTHER] = [row for row, value in enumerate(told) if value in small]
        for value, rows in shown.items():
            part = figures.rows(rows)
            part = part if len(rows) == 1 else part.together(shares[rows])
            yield GroupRelease(
                name,
                value,
                float(shares[rows].sum()),
                int(heard_of[rows].sum()),
                self._answer((name, told[rows[0]]), total, part),
                small if value == OTHER else (),
            )

    def _consistent(
        self, name: str, sizes: Mapping[str, int], total: Release
    ) -> tuple[PartFigures, Floats]:
        """Return the figures of an attribute's groups, a row for each, and their shares.

        They add up to the total, but for a distribution: no quantile is a mean of others.
        """
        releases = [self._mechanisms[name, value].shown for value in sizes]
        low, high = zip(*(one.interval for one in releases), strict=True)
        figures = PartFigures(
            np.array([one.values for one in releases]),
            np.array([one.variance for one in releases]),
            (np.array(low), np.array(high)),
        )
        shares = np.array([*sizes.values()]) / sum(sizes.values())
        if isinstance(self._query, DistributionQuery):
            return figures, shares
        return reconciled(figures, shares, total.values, total.variance), shares

    def _answer(self, group: Group, total: Release, part: PartFigures) -> Release:
        """Return the figures of a part, in one row, as the query answers; read as this group's."""
        low, high = part.interval
        release = Release(total.t, part.values[0], part.variance[0], total.fresh, (low[0], high[0]))
        return self._query.shown(release, self._mechanisms[group].noise)

    def alone(self, group: Group) -> Release:
        """Return the last release of a group's mechanism, before figures are made to add up."""
        mechanism = self._mechanisms[group]
        return self._query.shown(mechanism.shown, mechanism.noise)

    def save(self) -> list[dict[str, Any]]:
        """Return the state of all groups as plain JSON."""
        return [
            {"attribute": name, "value": value, "population": one.noise.population}
            | {"state": one.save()}
            for (name, value), one in self._mechanisms.items()
        ]

    def adopt(self, saved: Sequence[Mapping[str, Any]], move: Relabelling | None = None) -> None:
        """Go on from a state that was saved under these terms or earlier ones, group by group."""
        for one in saved:
            group = one["attribute"], one["value"]
            if group in self.attributes.groups:
                mechanism = self._mechanisms[group] = self._make(one["population"])
                mechanism.adopt(one["state"], move)


def merged(sizes: Mapping[str, int], least: int) -> tuple[str, ...]:
    """Return which values of an attribute are shown as one, given how many devices have each.

    They are those with fewer than `least` devices and `OTHER`, if it is there; while they are too
    few together, the smallest of the rest joins them.

    >>> merged({"de": 900, "fr": 90, "it": 80, "other": 700}, least=500)
    ('fr', 'it', 'other')
    >>> merged({"de": 900, "fr": 600, "it": 80}, least=500)
    ('fr', 'it')
    >>> merged({"de": 900, "other": 700}, least=500)
    ()
    """
    small = {value for value, size in sizes.items() if size < least}
    if not small:
        return ()
    small |= {OTHER} & sizes.keys()
    for value in sorted(sizes.keys() - small, key=lambda one: sizes[one]):
        if sum(sizes[one] for one in small) >= least:
            break
        small.add(value)
    return tuple(value for value in sizes if value in small)


def _answer_with(tally: Tally) -> Callable[[Ask], Tally]:
    return lambda ask: tally
