"""Advice on which mechanism and oracle to use, in sentences that follow from the figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldpstream.lab.numbers import readable
from ldpstream.lab.planning.costs import Cost, wire_bytes
from ldpstream.lab.planning.outcome import OutcomeSource, PlanOutcome
from ldpstream.lab.planning.reference import ASSUMED
from ldpstream.lab.planning.target import Target

AS_GOOD = 1.01
"""The largest ratio of two errors that is accepted in return for less traffic."""
WORTH_SAVING = 0.95
"""The ratio of the bytes of two reports, HTTP included, below which traffic counts as less."""
WEAK_EPSILON = 5.0
"""Above this an observer can be more than 99 % sure of what a device holds."""

WHERE = {
    OutcomeSource.SIMULATION: "simulated on the sample",
    OutcomeSource.REFERENCE: "simulated on a reference stream",
}


def best_mechanism(outcomes: Sequence[PlanOutcome]) -> PlanOutcome:
    """Return the outcome with the least error; of predicted ones, one that would see a change.

    That a stream does not change is an assumption, and a mechanism that asks once in a window has
    the least error under it. A simulation on a real sample needs no such rule.
    """
    seeing = [one for one in outcomes if one.how is OutcomeSource.SIMULATION or not one.blind]
    return min(seeing or outcomes, key=lambda one: one.rmse)


def best_oracle(outcomes: Sequence[PlanOutcome], goal: float | None = None) -> PlanOutcome:
    """Return the one with the least error, or one that errs hardly more and saves much traffic.

    If the best one reaches the goal, so does the one that is returned.
    """
    best = min(outcomes, key=lambda one: (one.rmse, one.report_bytes))
    bearable = AS_GOOD * best.rmse
    if goal is not None and best.rmse <= goal:
        bearable = min(bearable, goal)
    good = [one for one in outcomes if one.rmse <= bearable]
    shortest = min(good, key=lambda one: (one.report_bytes, one.rmse))
    saves = wire_bytes(shortest) < WORTH_SAVING * wire_bytes(best)
    return shortest if saves else best


@dataclass(frozen=True)
class Advice:
    """A choice among outcomes, and why."""

    chosen: PlanOutcome
    mechanisms: Sequence[PlanOutcome]
    """One for each pair of mechanism and oracle that was tried first."""
    oracles: Sequence[PlanOutcome]
    """The chosen mechanism with each oracle."""
    cost: Cost
    epsilon: float
    windows: float
    """How many windows the errors are averaged over."""
    target: Target | None

    def sentences(self) -> list[str]:
        said = (
            self._choice(),
            self._quantiles(),
            self._next(),
            self._blind(),
            self._oracle(),
            self._cost(),
            self._target(),
            self._weak(),
        )
        return [sentence for sentence in said if sentence]

    @property
    def _name(self) -> str:
        return self.chosen.mechanism.upper()

    def _choice(self) -> str:
        one = self.chosen
        still = f"predicted for {readable(self.windows)} windows of a stream that does not change"
        where = WHERE.get(one.how, still)
        of = " of the quantiles" if one.mae else ""
        return (
            f"Use {self._name} with {one.oracle}: its root mean squared error{of} is "
            f"{readable(one.rmse)} ({readable(one.settled)} in the last window), {where}."
        )

    def _quantiles(self) -> str:
        """Say how far off the quantiles and the mean are, and of which numbers this is true."""
        one = self.chosen
        if not one.mae:
            return ""
        errors = ", ".join(f"{name} {readable(error)}" for name, error in one.mae.items())
        assumed = f" {ASSUMED}" if one.how is OutcomeSource.REFERENCE else ""
        return f"Mean absolute errors, in the unit of the range: {errors}.{assumed}"

    def _next(self) -> str:
        others = [one for one in self.mechanisms if one.mechanism != self.chosen.mechanism]
        if not others:
            return ""
        second = best_mechanism(others)
        passed_over = any(one.rmse < second.rmse for one in others)
        which = "The next best that asks at every timestamp" if passed_over else "The next best"
        return (
            f"{which}, {second.mechanism.upper()}, errs "
            f"{second.rmse / self.chosen.rmse:.2f} times as much."
        )

    def _blind(self) -> str:
        """Say why a mechanism with a smaller error in the table was passed over."""
        better = [one for one in self.mechanisms if one.rmse < self.chosen.rmse and one.blind]
        if not better or self.chosen.blind:
            return ""
        passed = min(better, key=lambda one: one.rmse)
        where = "there" if passed.how is OutcomeSource.REFERENCE else "if nothing ever changed"
        return (
            f"{passed.mechanism.upper()} would err {passed.rmse / self.chosen.rmse:.2f} times as "
            f"much {where}, but it sees no change in {1 - passed.looks:.0%} of the timestamps: "
            "simulate on a sample (--counts, --data) before you take it."
        )

    def _oracle(self) -> str:
        one = self.chosen
        best = min(self.oracles, key=lambda other: other.rmse)
        if len(self.oracles) == 1:
            return ""
        if best.rmse == one.rmse:
            worst = max(self.oracles, key=lambda other: other.rmse)
            return (
                f"Of the oracles {one.oracle} has the least error; {worst.oracle} would err "
                f"{worst.rmse / one.rmse:.2f} times as much."
            )
        return (
            f"{best.oracle} would err {best.rmse / one.rmse:.3f} times as much, with reports of "
            f"{best.report_bytes} bytes where {one.oracle} takes {one.report_bytes}."
        )

    def _cost(self) -> str:
        cost = self.cost
        heard = cost.listening_bytes_per_day
        listening = f"takes about {_size(heard)} to hear of rounds" if heard else "need not listen"
        return (
            f"A device sends {readable(cost.reports_per_day)} reports a day, "
            f"{_size(cost.bytes_per_day)}, and {listening}; the collector gets up to "
            f"{readable(cost.peak_per_second)} reports/s."
        )

    def _target(self) -> str:
        if self.target is None:
            return ""
        users = self.target.users and f"{self.target.users:,} users at this epsilon"
        epsilon = self.target.epsilon and f"epsilon {self.target.epsilon} with these users"
        enough = ", or ".join(part for part in (users, epsilon) if part)
        state = "is reached" if self.target.reached else "is missed"
        return f"An error of {readable(self.target.goal)} {state}; the least for it: {enough}."

    def _weak(self) -> str:
        if self.epsilon <= WEAK_EPSILON:
            return ""
        return f"Epsilon {self.epsilon:g} hides little of what a device holds."


def _size(size: float) -> str:
    """Return a number of bytes in kB or MB.

    >>> _size(46_224), _size(2_448_000)
    ('46 kB', '2.4 MB')
    """
    if size < 1e6:
        return f"{size / 1e3:.2g} kB" if size < 1e5 else f"{size / 1e3:.0f} kB"
    return f"{size / 1e6:,.1f} MB"
