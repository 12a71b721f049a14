"""What the counted rounds of a stream tell of its fleet: who was heard, and how many there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ldpstream.collector.config import SelectionMethod, StreamConfig
from ldpstream.collector.rounds.group import RoundGroup
from ldpstream.collector.rounds.headcount import Estimate, Headcount
from ldpstream.collector.rounds.participation import Participation
from ldpstream.collector.rounds.planned import turns_of
from ldpstream.collector.store.contract import Store, StoredRelease
from ldpstream.mechanisms.messages import Ask
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.strata import STANDARD
from ldpstream.protocol.terms import Terms

HEARD_T = "heard_t"
"""In a release: the last timestamp with a report; 0 before the first one."""
FOLLOWED = 0.1
"""A population that follows the fleet is changed when it is off by more than this part of it."""


class FleetTracker:
    """The devices of one stream, as far as their reports show them."""

    def __init__(
        self, config: StreamConfig, terms: Terms, store: Store, last: StoredRelease | None
    ) -> None:
        self._config, self._terms, self._store = config, terms, store
        self._participation = Participation()
        self._shares: Mapping[str, float] = {}
        """The share of the fleet at each level of privacy, as far as reports have shown it."""
        told = last.content if last else {}
        self._counted = Estimate.read(told.get("devices", {})) if config.follows_fleet else None
        """How many devices there are, by the last reports, if that is followed."""
        self._heard_t: int | None = told.get(HEARD_T) if last else 0
        """The last timestamp with a report; None if the last release is older than 0.3.0."""
        slots, is_begun = config.selection is SelectionMethod.SLOTS, bool(self._heard_t)
        self._headcount = Headcount(terms.epsilon, terms.window, slots=slots, is_begun=is_begun)

    def go_over(self, terms: Terms) -> None:
        """Go on under new terms."""
        self._terms = terms
        self._headcount.follow(terms.epsilon, terms.window)

    def add(self, group: RoundGroup, history: TermsHistory) -> None:
        """Take note of counted rounds; after a crash they may be added again."""
        self._headcount.add(group)
        if group.reports:
            self._heard_t = max(self._heard_t or 0, group.t)
            if self._terms.levels:  # silence says nothing about who has chosen which
                self._shares = self._headcount.shares(group.t) or self._shares
        strata = group.strata(history)
        for one in group.rounds:
            assert one.support is not None
            terms = strata[one.name]
            self._participation.add(one, one.support.reports, terms.epsilon_nano, terms.window)

    def planned(self, ask: Ask, t: int, population: int, history: TermsHistory) -> dict[str, int]:
        """Return how many reports the round of each stratum is to get, by its suffix.

        A mechanism knows of no levels: where there are any, turns are counted in place of its ask.
        """
        levels = bool(history.at(t).levels)
        return {
            one.suffix: turns_of(one, population, self._shares, t) if levels else ask.users
            for one in history.strata_at(t)
        }

    def other_population(self, t: int, expected: int) -> int | None:
        """Return how many devices to expect from t on, if `expected` is too far from it."""
        self._counted = self._count(t)
        if self._counted is None:
            return None
        self._counted = self._counted.at_least(self._participation.at(t))
        wanted = max(self._counted.devices, self._config.least_population)
        return wanted if abs(wanted - expected) > FOLLOWED * expected else None

    def _count(self, t: int) -> Estimate | None:
        if self._config.selection is SelectionMethod.ROSTER:
            return Estimate.exactly(self._store.enrolled(self._config.name))
        return self._headcount.estimate(t)

    def to_json(self, t: int, expected: int) -> dict[str, Any]:
        """Return what a release at t says of the devices; `expected` is the population."""
        heard = {"heard": self._participation.at(t)}
        devices = heard | self._whole_fleet(expected) | self._levels(t)
        known = {} if self._heard_t is None else {HEARD_T: self._heard_t}
        return {"devices": devices} | known

    def _whole_fleet(self, expected: int) -> dict[str, int]:
        """Return the number of devices; only with a roster is it known who is enrolled."""
        if self._config.selection is SelectionMethod.ROSTER:
            return {"enrolled": self._store.enrolled(self._config.name)}
        return {"expected": expected} if self._counted is None else self._counted.to_json()

    def _levels(self, t: int) -> dict[str, dict[str, int]]:
        """Return how many devices were heard of each level of privacy, if there are several."""
        if not self._terms.levels:
            return {}
        heard = self._participation.by_level(t)
        names = (one.level for one in self._terms.strata)
        return {"levels": {name or STANDARD: heard.get(name, 0) for name in names}}
