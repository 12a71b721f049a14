"""The mechanism of a stream, with all that it has learnt, through new terms and populations."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ldpstream.collector.config import StreamConfig
from ldpstream.collector.rounds.breakdown import RunningBreakdown
from ldpstream.collector.rounds.combining import StrataTally, relabelling
from ldpstream.collector.rounds.group import RoundGroup
from ldpstream.collector.rounds.loading import mechanism_of, to_save
from ldpstream.collector.store.groups import GROUPS
from ldpstream.mechanisms.mechanism import Mechanism, Step
from ldpstream.mechanisms.messages import Ask, Release, Tally
from ldpstream.oracles.collector_half import Support
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.terms import Terms

_log = logging.getLogger(__name__)


class RunningMechanism:
    """A mechanism under the terms of the last release, and what is remembered of its strata."""

    def __init__(self, config: StreamConfig, terms: Terms, saved: dict[str, Any] | None) -> None:
        self.config, self.terms = config, terms
        self._mechanism = mechanism_of(config, terms)
        if saved is not None:
            # Mechanism and population are the file's, and may have changed since.
            for part in self._mechanism.adopt(saved):
                _log.warning("begins anew: %s", part, extra={"stream": config.name})
        self._strata = StrataTally(config, saved)
        self._breakdown = RunningBreakdown(config, terms, saved)
        self._planner: tuple[Terms, Mechanism] | None = None

    def step(self, t: int) -> Step:
        return self._mechanism.step(t)

    def ask_of_slot(self, t: int, terms: Terms) -> Ask:
        """Return what the slot of t is for, under the terms that are in force then.

        It depends on no tally. So another instance of the mechanism says it, while the one that
        releases may be behind.
        """
        if self._planner is None or self._planner[0] != terms:
            self._planner = terms, mechanism_of(self.config, terms)
        _, planner = self._planner
        return next(planner.step(t))

    def tally(
        self, group: RoundGroup, supports: Mapping[str, Support], history: TermsHistory
    ) -> Tally:
        """Return the tally of one ask, from the supports of its rounds by name."""
        self._breakdown.take_in(group, supports, history)
        return self._strata.tally(group, supports, history, self._mechanism.noise)

    def heard(
        self, group: RoundGroup, supports: Mapping[str, Support], history: TermsHistory
    ) -> None:
        """Take note of rounds that were tallied before a restart."""
        self._breakdown.heard(group, supports, history)

    def go_over(self, terms: Terms, history: TermsHistory) -> None:
        """Go on under new terms, with all that is known under the last ones."""
        move = relabelling(history, self.terms, terms)
        before, self._mechanism = self._mechanism, mechanism_of(self.config, terms)
        self._mechanism.adopt(before.save(), move)
        self._strata.go_over(move)
        self._breakdown.go_over(terms, move)
        self.terms = terms

    def expect(self, population: int) -> None:
        """Go on with another population, and all that is known."""
        self.config = replace(self.config, population=population)
        before, self._mechanism = self._mechanism, mechanism_of(self.config, self.terms)
        self._mechanism.adopt(before.save())
        self._strata.config = self.config
        self._breakdown.expect(self.config)
        self._planner = None

    def figures(self, released: Release | None = None) -> dict[str, Any]:
        """Return what readers are shown of a release; by default, of what is known now."""
        shown = self._mechanism.shown if released is None else released
        told = self.config.query.shown(shown, self._mechanism.noise).to_json()
        groups = [one.to_json() for one in self._breakdown.shown(shown)]
        return told | {GROUPS: groups} if self.terms.attributes else told

    @property
    def version(self) -> dict[str, int]:
        """The version of the terms for a release; empty for the first terms."""
        return {"terms_version": self.terms.version} if self.terms.version > 1 else {}

    def save(self) -> dict[str, Any]:
        states = self._strata.save() | self._breakdown.save()
        return self._mechanism.save() | states | to_save(self.config)
