"""A mechanism: the policy that decides, at each timestamp, what to ask and what to release.

It does no I/O, reads no clock, draws no randomness and never sees a user. It is a generator that
yields asks, is sent tallies and returns a release: the laboratory and the collector drive the same
object.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

from ldpstream.errors import Mistake, Problem
from ldpstream.mechanisms.division import Division
from ldpstream.mechanisms.memory import check_pattern, has_arrays, restore_memory, save_memory
from ldpstream.mechanisms.messages import Ask, Purpose, Release, Tally, pooled_tally
from ldpstream.mechanisms.noise import Noise
from ldpstream.refine.consistency import Consistency, consistent
from ldpstream.refine.relabelling import Relabelling

Step: TypeAlias = Generator[Ask, Tally, Release]


@dataclass(frozen=True)
class Publication:
    """A publication that was asked for: when, and how many units of the resource it took."""

    t: int
    amount: int


@dataclass(frozen=True)
class MechanismState:
    """The state that every mechanism keeps from one timestamp to the next."""

    t: int
    release: Release
    publications: tuple[Publication, ...]
    """The publications of the last w timestamps, and the last one however old it is."""


class Mechanism(ABC):
    """The common part of all mechanisms: state, memory, and the two ways to release.

    A subclass is an *allocation*: `decide` says how much of the division's resource to use when.
    """

    default_parameters: ClassVar[Any] = None
    """Those of a subclass that has any: a frozen dataclass of numbers (`parameters.py`)."""

    def __init__(
        self,
        division: Division,
        noise: Noise,
        *,
        pool: bool = False,
        consistency: Consistency = Consistency.NONE,
        parameters: Any = None,
    ) -> None:
        self.parameters = self.default_parameters if parameters is None else parameters
        self.division = division
        self.noise = noise
        self.window = division.window
        self.pool = pool
        self.consistency = consistency
        self.state = MechanismState(t=0, release=Release.unknown(noise.labels), publications=())
        self.memory = check_pattern(self.first_memory())

    def first_memory(self) -> Any:
        """Return what a subclass remembers besides `state`, before the first timestamp.

        A frozen dataclass of numbers, texts and arrays (`memory.py`), or None. `decide` sets
        `self.memory` to the next one; it is saved and restored with the state. Any other attribute
        is lost when the process ends.
        """
        return None

    @property
    def returns_after(self) -> int | None:
        """The timestamps after which the same users are asked again; None if nobody can say."""
        return None

    def step(self, t: int) -> Step:
        """Run one timestamp. Timestamps may be missed; none may be repeated.

        The release is made consistent; the one kept in the state, for comparison later, is raw.
        """
        if t <= self.state.t:
            raise Mistake(Problem.TIMESTAMP_ORDER, given=t, last=self.state.t)
        self.state = replace(self.state, t=t)
        release = yield from self.decide(t)
        self.state = replace(self.state, release=release)
        return self.shown

    @property
    def shown(self) -> Release:
        """The last release, made consistent."""
        release = self.state.release
        return release.showing(consistent(release.values, release.variance, self.consistency))

    @abstractmethod
    def decide(self, t: int) -> Step:
        """Yield the asks of timestamp t; return its release."""

    def publish(self, t: int, *tallies: Tally) -> Release:
        """Release r_t: the first tally or, when pooling, all of them, weighted by their variances.

        If nobody answered there is nothing to publish, and r_t is approximated.
        """
        if not tallies[0]:
            return self.approximate(t)
        if not self.pool:
            return Release(t, tallies[0].estimate, tallies[0].variance, fresh=True)
        pooled = pooled_tally([tally for tally in tallies if tally])
        return Release(t, pooled.estimate, pooled.variance, fresh=True)

    def approximate(self, t: int) -> Release:
        """Release r_t = r_{t-1}."""
        return replace(self.state.release, t=t, fresh=False)

    def ask_publication(self, t: int, amount: int) -> Ask:
        """Return the ask for a publication, recorded before it is made: it cannot be taken back."""
        recent = [spent for spent in self.state.publications if spent.t > t - self.window]
        self.state = replace(self.state, publications=(*recent, Publication(t, amount)))
        return self.division.ask(amount, Purpose.PUBLICATION)

    @property
    def publications(self) -> tuple[Publication, ...]:
        """The publications that still count, oldest first."""
        return self.state.publications

    @property
    def last_publication(self) -> Publication:
        """The latest publication; before the first, l = 0 with nothing spent."""
        return self.state.publications[-1] if self.state.publications else Publication(0, 0)

    def spent_before(self, t: int) -> int:
        """Return the units of publications in t-w+1 .. t-1."""
        return sum(s.amount for s in self.state.publications if t - self.window < s.t < t)

    def save(self) -> dict[str, Any]:
        """Return the state as plain JSON, with the parameters that `restore` checks."""
        return {
            "allocation": type(self).__name__,
            "division": type(self.division).__name__,
            "window": self.window,
            "total": self.division.total,
            "epsilon": self.division.epsilon.nano,
            "labels": self.noise.labels,
            "t": self.state.t,
            "release": self.state.release.to_json(),
            "publications": [[spent.t, spent.amount] for spent in self.state.publications],
        } | self._saved_memory()

    def _saved_memory(self) -> dict[str, Any]:
        pattern = self.first_memory()
        return {} if pattern is None else {"memory": save_memory(self.memory, pattern)}

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore a state that `save` returned under the same terms, here or elsewhere."""
        expected = self.save()
        for name in ("allocation", "division", "window", "total", "epsilon", "labels"):
            if saved[name] != expected[name]:
                raise Mistake(
                    Problem.STATE_MISMATCH,
                    found=f"{name} {saved[name]}",
                    expected=f"{name} {expected[name]}",
                )
        pattern = self.first_memory()
        self.memory = None if pattern is None else restore_memory(saved.get("memory"), pattern)
        self.state = MechanismState(
            saved["t"],
            Release.from_json(saved["release"]),
            tuple(Publication(t, amount) for t, amount in saved["publications"]),
        )

    def adopt(self, saved: dict[str, Any], move: Relabelling | None = None) -> tuple[str, ...]:
        """Go on from a state that was saved under other terms; return what begins anew, in words.

        Labels may have changed (`move`), and epsilon, window, oracle, population and mechanism too.
        Timestamps, releases and all that a filter knows go on. So do the publications that were
        asked for, in whole units, as long as the same resource is divided: whoever reported then
        has still spent it. Without a change this is `restore`.
        """
        before, now = saved["labels"], self.noise.labels
        if move is None:
            move = Relabelling.same(now) if before == now else Relabelling.unrelated(before, now)
        if (len(move.targets), move.labels) != (before, now):
            raise Mistake(
                Problem.STATE_MISMATCH,
                found=f"labels {before}",
                expected=f"labels {len(move.targets)} that became {now}",
            )
        return tuple(dict.fromkeys(self._adopt(saved, move)))

    def _adopt(self, saved: dict[str, Any], move: Relabelling) -> list[str]:
        saved = saved.get("inner", saved)
        return self._adopt_state(saved, move) + self._adopt_memory(saved, move)

    def _adopt_state(self, saved: dict[str, Any], move: Relabelling) -> list[str]:
        division, anew = type(self.division).__name__, []
        publications = tuple(
            Publication(t, min(amount, self.division.total)) for t, amount in saved["publications"]
        )
        if saved["division"] != division:
            publications = ()
            anew.append(f"the publications: {saved['division']} became {division}")
        if move.new.all():
            anew.append("the releases: no label is left of those of before")
        release = Release.from_json(saved["release"]).relabelled(move)
        self.state = MechanismState(saved["t"], release, publications)
        return anew

    def _adopt_memory(self, saved: dict[str, Any], move: Relabelling) -> list[str]:
        self.memory = pattern = self.first_memory()
        if pattern is None:
            return []
        if saved["allocation"] == type(self).__name__:
            carried = self.carry_memory(saved.get("memory"), move)
            if carried is not None:
                self.memory = carried
                return []
        return [f"the memory of {type(self).__name__}"]

    def carry_memory(self, saved: Any, move: Relabelling) -> Any:
        """Return what a memory, as it was saved, means under other labels, or None if nothing.

        A memory with arrays is carried over if the labels stay: a subclass may know how to do more.
        """
        pattern = self.first_memory()
        if not move.is_same and has_arrays(pattern):
            return None
        try:
            return restore_memory(saved, pattern)
        except Mistake:
            return None


def drive(step: Step, answer: Callable[[Ask], Tally]) -> Release:
    """Run one timestamp to its release, answering each ask as it comes.

    A timestamp is replayed by answering from stored tallies.
    """
    try:
        ask = next(step)
        while True:
            ask = step.send(answer(ask))
    except StopIteration as done:
        release: Release = done.value
        return release
