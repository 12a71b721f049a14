"""The mechanisms by name: an allocation over a division.

A mechanism of your own is one more entry:

>>> from ldpstream.mechanisms.uniform import Uniform
>>> register("mine", Uniform, PopulationDivision)
>>> "mine" in names()
True
>>> unregister("mine")
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ldpstream.arguments import meant
from ldpstream.errors import Mistake, Problem
from ldpstream.mechanisms.absorption import Absorption
from ldpstream.mechanisms.classic.fast import Fast
from ldpstream.mechanisms.classic.pegasus import Pegasus
from ldpstream.mechanisms.classic.rescuedp import RescueDp
from ldpstream.mechanisms.classic.spas import Spas
from ldpstream.mechanisms.distribution import Distribution
from ldpstream.mechanisms.division import BudgetDivision, Division, PopulationDivision
from ldpstream.mechanisms.filtered import Filtered, Observed
from ldpstream.mechanisms.mechanism import Mechanism
from ldpstream.mechanisms.parameters import read_parameters, split_name
from ldpstream.mechanisms.sampling import Sampling
from ldpstream.mechanisms.settings import Settings
from ldpstream.mechanisms.uniform import Uniform
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.terms import SelectionMethod
from ldpstream.refine.consistency import Consistency


@dataclass(frozen=True)
class Recipe:
    """The parts that a named mechanism is made of."""

    allocation: type[Mechanism]
    division: type[Division]
    filtered: bool = False
    """Whether it releases what a filter makes of all tallies so far."""
    parameters: Any = None
    """Those of the allocation, if they are not its defaults."""

    @property
    def takes_slots(self) -> bool:
        """Whether every timestamp asks its own share of the users for all of epsilon.

        What is asked then depends on no tally, so that devices can report unasked, in slots.
        """
        return self.allocation is Uniform and self.division is PopulationDivision

    def build(self, settings: Settings) -> Mechanism:
        """Return the mechanism, at t = 0."""
        if settings.selection is SelectionMethod.SLOTS and not self.takes_slots:
            raise Mistake(Problem.LEVELS_MECHANISM if settings.levels else Problem.SLOTS_MECHANISM)
        division = self.division(settings.epsilon, settings.users, settings.window)
        noise = settings.query.noise(settings, _even_share(settings, division))
        consistency = settings.query.consistency(settings.consistency or self._usual_consistency)
        allocated = partial(
            self.allocation, division, noise, pool=settings.pool, parameters=self.parameters
        )
        if not self.filtered and not settings.intervals:
            return allocated(consistency=consistency)
        listener = Filtered if self.filtered else Observed
        return listener(allocated(), consistency, settings.reshuffle, settings.returns_after)

    @property
    def _usual_consistency(self) -> Consistency:
        """The default: raw estimates for the paper's mechanisms; a filter's are biased anyway."""
        return Consistency.NORM_SUB if self.filtered else Consistency.NONE


_RECIPES: dict[str, Recipe] = {
    "lbu": Recipe(Uniform, BudgetDivision),
    "lsp": Recipe(Sampling, PopulationDivision),
    "lbd": Recipe(Distribution, BudgetDivision),
    "lba": Recipe(Absorption, BudgetDivision),
    "lpu": Recipe(Uniform, PopulationDivision),
    "lpd": Recipe(Distribution, PopulationDivision),
    "lpa": Recipe(Absorption, PopulationDivision),
    "lpf": Recipe(Uniform, PopulationDivision, filtered=True),
    "lpdf": Recipe(Distribution, PopulationDivision, filtered=True),
    "lpaf": Recipe(Absorption, PopulationDivision, filtered=True),
    "fast": Recipe(Fast, PopulationDivision),
    "pegasus": Recipe(Pegasus, PopulationDivision),
    "rescuedp": Recipe(RescueDp, PopulationDivision),
    "spas": Recipe(Spas, PopulationDivision),
    "fast-budget": Recipe(Fast, BudgetDivision),
    "pegasus-budget": Recipe(Pegasus, BudgetDivision),
    "rescuedp-budget": Recipe(RescueDp, BudgetDivision),
    "spas-budget": Recipe(Spas, BudgetDivision),
}

BUILT_IN = tuple(_RECIPES)
"""The mechanisms of this package, without those that were registered since."""
PAPER = ("lbu", "lsp", "lbd", "lba", "lpu", "lpd", "lpa")
"""The seven of LDP-IDS. LPF is ours; LPDF and LPAF put its filter on two of them."""
CLASSIC = ("fast", "pegasus", "rescuedp", "spas")
"""Mechanisms of others, under population division; with `-budget` under budget division."""


def names() -> tuple[str, ...]:
    """Return the names of all registered mechanisms, the paper's seven first."""
    return tuple(_RECIPES)


def register(
    name: str,
    allocation: type[Mechanism],
    division: type[Division],
    *,
    filtered: bool = False,
) -> None:
    """Make a mechanism known under `name`, to the simulator, the command line and the tests.

    With `filtered`, it releases what a filter makes of all its tallies, as LPF does.

    >>> register("mine", Uniform, PopulationDivision, filtered=True)  # LPF by another name
    >>> unregister("mine")
    """
    _RECIPES[name.lower()] = Recipe(allocation, division, filtered)


def unregister(name: str) -> None:
    del _RECIPES[name.lower()]


def build(name: str, settings: Settings) -> Mechanism:
    """Return the mechanism of that name, at t = 0; parameters may follow: `fast(theta=5)`.

    >>> lpa = build("lpa", Settings(labels=2, users=1000, epsilon=Epsilon.of(1), window=10))
    >>> next(lpa.step(1)).users
    50
    """
    return recipe(name).build(settings)


def recipe(text: str) -> Recipe:
    """Return what the mechanism of that name is made of, with the parameters that are written.

    >>> recipe("fast(theta=2)").parameters.theta
    2.0
    """
    name, written = split_name(text)
    try:
        found = _RECIPES[name]
    except KeyError:
        raise _unknown(name) from None
    parameters = read_parameters(name, written, found.allocation.default_parameters)
    return replace(found, parameters=parameters)


def _unknown(name: str) -> Mistake:
    near = meant(name, names())
    guess = "" if near is None else f"did you mean {near}? Else "
    known = ", ".join(names())
    return Mistake(Problem.MECHANISM_UNKNOWN, given=name, guess=guess, known=known)


def takes_slots(name: str) -> bool:
    """Return whether devices can report to this mechanism unasked, in slots.

    >>> [name for name in PAPER if takes_slots(name)]
    ['lpu']
    """
    return recipe(name).takes_slots


def usual_selection(name: str) -> SelectionMethod:
    """Return how a collector reaches devices for this mechanism, unless it is told otherwise."""
    return SelectionMethod.SLOTS if takes_slots(name) else SelectionMethod.OPEN


def report_epsilon(name: str, settings: Settings) -> Epsilon:
    """Return the epsilon of one report of this mechanism, if all timestamps had equal shares.

    >>> str(report_epsilon("lbu", Settings(labels=2, users=9, epsilon=Epsilon.of(1), window=10)))
    '0.1'
    """
    division = recipe(name).division(settings.epsilon, settings.users, settings.window)
    return _even_share(settings, division)


def _even_share(settings: Settings, division: Division) -> Epsilon:
    """Return the epsilon of one report, if all timestamps had equal shares."""
    if isinstance(division, BudgetDivision):
        return Epsilon(division.share(settings.window))
    return settings.epsilon
