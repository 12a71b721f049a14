"""Bugs that are planted for the length of one audit world, to show that the audit would find them.

A device does not trust its collector, so a bug of the collector alone leaks nothing: the ledger
refuses. Where a bug concerns both sides it is planted on both. Nothing but the audit imports this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from ldpstream.audit import crowd
from ldpstream.collector import coordinator, starting
from ldpstream.collector.selection import RosterSelection
from ldpstream.device import account
from ldpstream.device.account import Account, Submission
from ldpstream.device.rounds import Refused, Round
from ldpstream.device.rules import Held, Silence
from ldpstream.mechanisms.absorption import Absorption
from ldpstream.mechanisms.division import BudgetDivision
from ldpstream.mechanisms.registry import register, unregister
from ldpstream.oracles import Oracle
from ldpstream.oracles.unary.device import OueDevice as Oue
from ldpstream.oracles.unary.device import coins
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.ledger import Ledger
from ldpstream.privacy.randomness import Source, SystemSource

Plant = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Bug:
    """What is wrong, in words, and how each side is made to do it."""

    name: str
    words: str
    mechanism: str
    """Under which it is attacked."""
    on_collector: Plant = nullcontext
    on_device: Plant = nullcontext
    oracle: Oracle = Oracle.GRR
    source: Callable[[], Source] = SystemSource
    epsilon: str = "1"
    """Promised, and exceeded. A leak in many small reports is clearer at a larger one."""
    worlds: int = 1
    """Worlds a pass: more for a leak that few reports show."""

    @contextmanager
    def planted(self) -> Iterator[None]:
        """On both sides."""
        with ExitStack() as both:
            both.enter_context(self.on_collector())
            both.enter_context(self.on_device())
            yield


# --- Recycling one step early ---------------------------------------------------------------------


class HastyLedger(Ledger):
    """Forgets one timestamp early."""

    def most(self, t: int) -> int:
        return Ledger(self.limit, self.window - 1, self.spends).most(t)


def _hasty_roster() -> AbstractContextManager[object]:
    honest = RosterSelection._forget

    def forget(self: RosterSelection, last: int) -> None:
        honest(self, last + 1)

    return patch.object(RosterSelection, "_forget", forget)


def _hasty_device() -> AbstractContextManager[object]:
    return patch.object(account, "Ledger", HastyLedger)


# --- Re-drawn retries -----------------------------------------------------------------------------


def _redrawing_device() -> AbstractContextManager[object]:
    honest = Account._consider

    def consider(
        self: Account, pin: str, asked: Round, value: Held
    ) -> Submission | Silence | Refused:
        again = asked.key in self._answered
        outcome = honest(self, pin, asked, value)
        held = value()
        if not again or held is None or not isinstance(outcome, Submission):
            return outcome
        terms = self.enrolled.terms
        half = terms.randomiser(Epsilon(asked.epsilon_nano))
        return self._submission(asked, half.encode(half.perturb(held, self._source)))

    return patch.object(Account, "_consider", consider)


# --- A biased coin --------------------------------------------------------------------------------


class BiasedSource(SystemSource):
    """Every second tail is taken for a head."""

    def coin(self, favour: int, total: int) -> bool:
        return super().coin(favour, total) or super().coin(1, 2)


# --- A bit that is never cleared ------------------------------------------------------------------


def _stuck_bit() -> AbstractContextManager[object]:
    def perturb(self: Oue, value: int, source: Source) -> int:
        return coins(source, self.labels, self._against, self._total) | 1 << value

    return patch.object(Oue, "_perturb", perturb)


# --- epsilon/w instead of epsilon/(2w), in both halves --------------------------------------------


class DoubledAbsorption(Absorption):
    """Its dissimilarities take all of the window, and so do its publications."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.unit = self.division.share(self.window)


class GenerousLedger(Ledger):
    """Allows twice the limit."""

    def left(self, t: int) -> int:
        return max(0, 2 * self.limit - self.most(t))


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
    return patch.object(account, "Ledger", GenerousLedger)


BUGS = (
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
)
