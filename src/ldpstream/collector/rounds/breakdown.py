"""The groups of devices of a running stream: their tallies, out of its rounds, and their state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ldpstream.collector.config import StreamConfig
from ldpstream.collector.rounds.combining import StrataTally
from ldpstream.collector.rounds.group import RoundGroup
from ldpstream.collector.rounds.loading import mechanism_of
from ldpstream.collector.rounds.parts import reports_of
from ldpstream.mechanisms.breakdown import Attendance, Breakdown, Group, GroupRelease
from ldpstream.mechanisms.messages import Release, Tally
from ldpstream.oracles.collector_half import Support
from ldpstream.protocol.attributes import OTHER, Attributes
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.terms import Terms
from ldpstream.refine.relabelling import Relabelling

STATE = "breakdown"
"""The key, in a mechanism's saved state, of the states of the groups."""


class RunningBreakdown:
    """The groups of a stream under the terms of the last release; none without attributes.

    Who was heard in the last window is not saved: after a restart `heard` gets the rounds again.
    """

    def __init__(self, config: StreamConfig, terms: Terms, saved: dict[str, Any] | None) -> None:
        self._config, self._terms = config, terms
        self._attendance = Attendance()
        self._strata: dict[Group, StrataTally] = {}
        self._groups = self._begun(terms)
        states = (saved or {}).get(STATE, [])
        self._groups.adopt(states)
        for one in states:
            group = one["attribute"], one["value"]
            if group in self._groups:
                self._strata[group] = StrataTally(config, one["state"], group)

    def _begun(self, terms: Terms) -> Breakdown:
        return Breakdown(
            terms.attributes or Attributes(()),
            self._config.query,
            self._config.population,
            lambda population: mechanism_of(self._sized(population), terms),
        )

    def _sized(self, population: int) -> StreamConfig:
        return replace(self._config, population=max(population, self._config.least_population))

    def heard(
        self, rounds: RoundGroup, supports: Mapping[str, Support], history: TermsHistory
    ) -> None:
        """Take note of whose reports these counted rounds have."""
        attributes = history.at(rounds.t).attributes
        if attributes is None:
            return
        groups = attributes.groups
        parts = {group: reports_of(group, rounds, supports, history) for group in groups}
        for name, terms in rounds.strata(history).items():
            reports = {group: part[name].reports for group, part in parts.items()}
            self._attendance.add(name, rounds.t, terms.window, reports)

    def take_in(
        self, rounds: RoundGroup, supports: Mapping[str, Support], history: TermsHistory
    ) -> None:
        """Let each group take in its reports of one ask, which was the only one of its timestamp.

        With slots there is one; and only with slots do reports tell attributes.
        """
        if self._terms.attributes is None:
            return
        self.heard(rounds, supports, history)
        self._groups.expect(self._heard_until(rounds.t))
        tallies: dict[Group, Tally] = {}
        for group in (one for one in self._terms.attributes.groups if one in self._groups):
            strata = self._strata.setdefault(group, StrataTally(self._config, None, group))
            noise = self._groups.noise_of(group)
            tallies[group] = strata.tally(rounds, supports, history, noise)
        self._groups.step(rounds.t, tallies)

    def shown(self, total: Release) -> list[GroupRelease]:
        """Return what is released of the groups beside the raw release of the fleet."""
        return self._groups.shown(total, self._heard_until(total.t), self._config.least_group)

    def _heard_until(self, t: int) -> Counter[Group]:
        """Return how many devices of each group were heard in the window that ends with t.

        Earlier terms may have told apart what is one group now.
        """
        heard: Counter[Group] = Counter()
        for told, devices in self._attendance.at(t).items():
            group = self._groups.attributes.group_of(*told)
            if group is not None:
                heard[group] += devices
        return heard

    def expect(self, config: StreamConfig) -> None:
        """Go on with another population of the fleet."""
        self._config = config
        self._groups.population = config.population
        for strata in self._strata.values():
            strata.config = config

    def go_over(self, terms: Terms, move: Relabelling | None) -> None:
        """Go on under new terms with the groups that are made up of the same devices as before."""
        before, self._terms = self._terms.attributes, terms
        saved = [one for one in self._groups.save() if _is_same(one, before, terms.attributes)]
        memories, self._strata = self._strata, {}
        self._groups = self._begun(terms)
        self._groups.adopt(saved, move)
        for group, strata in memories.items():
            if group in self._groups:
                strata.go_over(move)
                self._strata[group] = strata

    def save(self) -> dict[str, Any]:
        """Return what belongs to the mechanism's state: nothing without attributes."""
        states = self._groups.save()
        for one in states:
            one["state"] |= self._strata[one["attribute"], one["value"]].save()
        return {STATE: states} if states else {}


def _is_same(saved: Mapping[str, Any], before: Attributes | None, now: Attributes | None) -> bool:
    """Return whether an earlier group has the same devices under the new attributes."""
    if saved["value"] != OTHER:
        return True
    earlier, later = (each and each.named(saved["attribute"]) for each in (before, now))
    return earlier == later
