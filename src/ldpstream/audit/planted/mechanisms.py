"""Planted bugs of mechanisms, randomisers and ledgers; most are found from the wire.

Two are faults of published code of this field: RetraSyn recycles users one step early, and DDRM
allows k + 1 reports where k are promised.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from ldpstream.audit import crowd, drills
from ldpstream.audit.planted.bug import Bug
from ldpstream.audit.world import INTERVAL_MS
from ldpstream.collector.rounds import coordinator
from ldpstream.collector.rounds import loading as starting
from ldpstream.collector.rounds.selection import RosterSelection
from ldpstream.device import memory
from ldpstream.device.account import Account, CommittedReport, Outcome, Reading
from ldpstream.mechanisms.absorption import Absorption
from ldpstream.mechanisms.division import BudgetDivision
from ldpstream.mechanisms.registry import register, unregister
from ldpstream.oracles import Oracle
from ldpstream.oracles.unary.device import OueDevice as Oue
from ldpstream.oracles.unary.device import coins
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.ledger import Ledger, Promise
from ldpstream.privacy.randomness import Source, SystemSource
from ldpstream.protocol.answers import Refused, Round

# --- Recycling one step early ---------------------------------------------------------------------


class LaxLedger(Ledger):
    """A ledger that keeps looser promises than those that were made."""

    def lax(self, promise: Promise) -> Promise:
        raise NotImplementedError

    @property
    def _believed(self) -> Ledger:
        return Ledger(
            tuple(map(self.lax, self.promises)), self.debits, self.forgotten, self.reserves
        )

    def left(self, moment: int) -> int:
        return self._believed.left(moment)

    def free_from(self, nano: int) -> int | None:
        return self._believed.free_from(nano)


class HastyLedger(LaxLedger):
    """A ledger that forgets one interval early."""

    def lax(self, promise: Promise) -> Promise:
        return replace(promise, span=promise.span - INTERVAL_MS)


def _hasty_roster() -> AbstractContextManager[object]:
    honest = RosterSelection._forget

    def forget(self: RosterSelection, last: int) -> None:
        honest(self, last + 1)

    return patch.object(RosterSelection, "_forget", forget)


def _hasty_device() -> AbstractContextManager[object]:
    return patch.object(memory, "Ledger", HastyLedger)


# --- k + 1 reports where k are promised -----------------------------------------------------------


class OneMoreLedger(LaxLedger):
    """A ledger that asks whether the reports before this one were within the limit."""

    def lax(self, promise: Promise) -> Promise:
        last = self.debits[-1][1] if self.debits else 0
        return replace(promise, epsilon_nano=promise.epsilon_nano + last)


def _one_more_device() -> AbstractContextManager[object]:
    return patch.object(memory, "Ledger", OneMoreLedger)


# --- Re-drawn retries -----------------------------------------------------------------------------


def _redrawing_device() -> AbstractContextManager[object]:
    honest = Account.consider

    def consider(self: Account, pin: str, asked: Round | Refused, reading: Reading) -> Outcome:
        again = isinstance(asked, Round) and asked.key in self._answered
        outcome = honest(self, pin, asked, reading)
        if not again or not isinstance(outcome, CommittedReport):
            return outcome
        terms, asked = self.enrolled.terms, outcome.round
        randomiser = terms.randomiser(Epsilon(asked.epsilon_nano))
        drawn = randomiser.perturb(reading(terms, self._source), self._source)
        return self._submission(asked, randomiser.encode(drawn))

    return patch.object(Account, "consider", consider)


# --- A biased coin --------------------------------------------------------------------------------


class BiasedSource(SystemSource):
    """A source that turns every second tail into a head."""

    def coin(self, favour: int, total: int) -> bool:
        return super().coin(favour, total) or super().coin(1, 2)


# --- A bit that is never cleared ------------------------------------------------------------------


def _stuck_bit() -> AbstractContextManager[object]:
    def perturb(self: Oue, value: int, source: Source) -> int:
        return coins(source, self.labels, self._against, self._total) | 1 << value

    return patch.object(Oue, "_perturb", perturb)


# --- epsilon/w instead of epsilon/(2w), in both halves --------------------------------------------


class DoubledAbsorption(Absorption):
    """An absorption whose dissimilarities take the whole budget, as do its publications."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.unit = self.division.share(self.window)


class GenerousLedger(LaxLedger):
    """A ledger that allows twice the limit."""

    def lax(self, promise: Promise) -> Promise:
        return replace(promise, epsilon_nano=2 * promise.epsilon_nano)


DOUBLED = "lba-doubled"


@contextmanager
def _doubled_collector() -> Iterator[None]:
    honest = starting.selection_of

    def generous(*arguments: Any) -> Any:
        selection = honest(*arguments)
        selection.epsilon = selection.epsilon + selection.epsilon
        return selection

    register(DOUBLED, DoubledAbsorption, BudgetDivision)
    try:
        with (
            patch.object(coordinator, "selection_of", generous),
            patch.object(crowd, "Ledger", GenerousLedger),
        ):
            yield
    finally:
        unregister(DOUBLED)


def _generous_device() -> AbstractContextManager[object]:
    return patch.object(memory, "Ledger", GenerousLedger)


MECHANISMS = (
    Bug(
        "recycled one step early",
        "who has reported is free again after w-1 timestamps, for the roster and for the ledger",
        "lpu",
        on_collector=_hasty_roster,
        on_device=_hasty_device,
        worlds=3,
    ),
    Bug(
        "re-drawn retries",
        "a round that is asked again gets a fresh draw",
        "lsp",
        on_device=_redrawing_device,
        worlds=2,
    ),
    Bug(
        "a biased coin",
        "every second tail is taken for a head",
        "lsp",
        source=BiasedSource,
    ),
    Bug(
        "a bit that is never cleared",
        "the bit of the true value is always set (unary encoding, OUE)",
        "lsp",
        oracle=Oracle.OUE,
        on_device=_stuck_bit,
    ),
    Bug(
        "epsilon/w in both halves",
        "dissimilarities and publications take epsilon/w each instead of epsilon/(2w), and the"
        " device's ledger lets it pass",
        DOUBLED,
        on_collector=_doubled_collector,
        on_device=_generous_device,
        epsilon="2",
        worlds=2,
    ),
    Bug(
        "k + 1 reports where k are promised",
        "what was sent is compared with the limit without the report that is about to be sent",
        on_device=_one_more_device,
        drill=drills.one_report_too_many,
    ),
)
