"""The attack: many secrets, whole transcripts, guesses, and what they prove about epsilon.

Besides the attacker, who sees only the wire, there is the judge, who knows when each value was read
(`judge.py`): what it finds is an exact violation. Bugs of clocks, files and values are shown by
hostile scenarios with one device (`drills.py`), with the bug and without it.

Results are evaluated once, at the end: how long an audit runs never depends on them.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import chain, cycle
from pathlib import Path

from ldpstream.audit import planted
from ldpstream.audit.attacker import evidence
from ldpstream.audit.bounds import Score, score
from ldpstream.audit.drills import Drill
from ldpstream.audit.planted.bug import Bug
from ldpstream.audit.world import Scenario, World
from ldpstream.collector.config import SelectionMethod
from ldpstream.fleet.folders import memory_folder
from ldpstream.mechanisms.registry import BUILT_IN, PAPER, names, takes_slots
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.vocabulary import Vocabulary

MECHANISMS = (*PAPER, "lpf")
ERROR = 1e-6
"""The probability that any bound of an audit is wrong, for all of them together."""
EPSILON = "1"
WORDS = Vocabulary(salt=1, bits=16, prefixes=(2,))
ASKING = (SelectionMethod.ROSTER, SelectionMethod.OPEN)
"""How every mechanism can reach its devices."""

Tell = Callable[[str, int, int], None]
"""A callback for progress: the name of the stage, what is done, and of how much."""


@dataclass(frozen=True)
class WorldSize:
    """The size of worlds. A world has targets x windows secrets."""

    targets: int = 100
    crowd: int = 120
    windows: int = 10
    window: int = 2


@dataclass(frozen=True)
class Trial:
    """A test case: a mechanism as it is or with a bug, or a bug that a drill must show."""

    mechanism: str
    bug: Bug | None = None
    words: Vocabulary | None = None
    """That of a stream of texts, in place of labels."""

    @property
    def name(self) -> str:
        of_texts = " of texts" if self.words else ""
        return self.bug.name if self.bug else self.mechanism + of_texts

    @property
    def epsilon(self) -> Epsilon:
        return Epsilon.of(self.bug.epsilon if self.bug else EPSILON)

    @property
    def attacked(self) -> bool:
        """Whether it is attacked with guesses, and not shown by a drill."""
        return self.bug is None or self.bug.drill is None

    @property
    def worlds(self) -> int:
        """The worlds in one pass, after which a bug is almost certain to be found."""
        return self.bug.worlds if self.bug else len(self.selections)

    @property
    def selections(self) -> tuple[SelectionMethod, ...]:
        """How devices are reached, one world after the other."""
        if self.words is not None:
            return (SelectionMethod.SLOTS,)
        unasked = self.bug is None and takes_slots(self.mechanism)
        return (*ASKING, SelectionMethod.SLOTS) if unasked else ASKING

    def scenario(self, size: WorldSize, number: int) -> Scenario:
        """Return a scenario; they vary, so that secrets start anywhere in a mechanism's cycle."""
        turn = number + number // math.lcm(size.window, len(self.selections))
        usual = Oracle.GRR if self.words is None else Oracle.HADAMARD
        return Scenario(
            self.mechanism,
            self.bug.oracle if self.bug else usual,
            self.epsilon,
            size.window,
            self.selections[turn % len(self.selections)],
            offset=number % size.window,
            targets=size.targets,
            crowd=size.crowd,
            windows=size.windows,
            words=self.words,
        )

    def planting(self) -> AbstractContextManager[object]:
        return self.bug.planted() if self.bug else nullcontext()


def all_trials() -> tuple[Trial, ...]:
    own = (name for name in names() if name not in BUILT_IN)
    honest = tuple(Trial(name) for name in (*MECHANISMS, *own))
    texts = Trial("lpf", words=WORDS)
    return (*honest, texts, *(Trial(bug.mechanism, bug) for bug in planted.BUGS))


@dataclass(frozen=True)
class Finding:
    """The result of a trial."""

    trial: Trial
    score: Score
    lower_bound: float
    seconds: float
    violations: tuple[str, ...] = ()
    """The exact violations that the judge found."""
    without_bug: tuple[str, ...] = ()
    """The violations found in the same drill without the bug."""

    @property
    def exceeds(self) -> bool:
        """Whether the promise is proven to be broken."""
        return self.lower_bound > float(self.trial.epsilon) or bool(self.violations)

    @property
    def as_it_should_be(self) -> bool:
        """Whether a planted bug was found or, where there is none, no violation."""
        return self.exceeds == (self.trial.bug is not None) and not self.without_bug

    @property
    def under(self) -> str:
        """The mechanism under which it was attacked, or that it was a drill."""
        return self.trial.mechanism.upper() if self.trial.attacked else "a drill"

    @property
    def proof(self) -> str:
        """The lower bound on epsilon, or that the violation is exact."""
        return f"{self.lower_bound:.2f}" if self.trial.attacked else "exact"


@dataclass(frozen=True)
class _Notes:
    """What the attacker has gathered in one trial; it is only ever replaced as a whole."""

    evidence: tuple[float, ...] = ()
    truth: tuple[bool, ...] = ()
    worlds: int = 0
    seconds: float = 0.0
    violations: tuple[str, ...] = ()
    without_bug: tuple[str, ...] = ()


class AttackSeries:
    """A series of attacks, in passes over all trials."""

    def __init__(self, trials: tuple[Trial, ...], size: WorldSize | None = None) -> None:
        self.size = size or WorldSize()
        self._trials = trials
        self._notes = {trial: _Notes() for trial in trials}
        self.stopped = False

    def run(self, tell: Tell = lambda stage, done, total: None) -> None:
        """Run one pass; Ctrl-C ends it early and keeps the results so far."""
        jobs = self._one_pass()
        for done, trial in enumerate(jobs):
            tell(trial.name, done, len(jobs))
            if not self._attack_unless_stopped(trial):
                return

    def run_for(self, seconds: float, tell: Tell = lambda stage, done, total: None) -> None:
        """Run one pass, then passes over the mechanisms without a bug until the time is up."""
        end = time.monotonic() + seconds
        for trial in chain(self._one_pass(), cycle(self._without_bug())):
            left = end - time.monotonic()
            tell(trial.name, int(seconds - max(left, 0)), int(seconds))
            if left <= 0 or not self._attack_unless_stopped(trial):
                return

    def _one_pass(self) -> list[Trial]:
        return [trial for trial in self._trials for _ in range(trial.worlds)]

    def _without_bug(self) -> list[Trial]:
        return [trial for trial in self._trials if trial.bug is None]

    def _attack_unless_stopped(self, trial: Trial) -> bool:
        try:
            self._attack(trial)
        except KeyboardInterrupt:
            self.stopped = True
        return not self.stopped

    def _attack(self, trial: Trial) -> None:
        notes, began = self._notes[trial], time.monotonic()
        if trial.bug is not None and trial.bug.drill is not None:
            with trial.planting():
                violations = _played(trial.bug.drill)
            without = _played(trial.bug.drill)
            seconds = notes.seconds + time.monotonic() - began
            self._notes[trial] = _Notes((), (), 1, seconds, violations, without)
            return
        scenario = trial.scenario(self.size, notes.worlds)
        with tempfile.TemporaryDirectory(dir=memory_folder()) as folder, trial.planting():
            world = World(scenario, Path(folder), trial.bug.source() if trial.bug else None)
            world.live()
        self._notes[trial] = _Notes(
            (*notes.evidence, *chain(*evidence(scenario, world.wire))),
            (*notes.truth, *map(bool, chain(*world.bits))),
            notes.worlds + 1,
            notes.seconds + time.monotonic() - began,
            (*notes.violations, *world.violations),
        )

    @property
    def unfinished(self) -> list[str]:
        """The trials without a complete pass, which are too short to show anything."""
        return [trial.name for trial, notes in self._notes.items() if notes.worlds < trial.worlds]

    def findings(self) -> list[Finding]:
        """Return the findings of complete trials; `ERROR` is divided among all trials."""
        error = ERROR / max(1, sum(trial.attacked for trial in self._trials))
        found = []
        for trial, notes in self._notes.items():
            if notes.worlds >= trial.worlds:
                result = score(notes.evidence, notes.truth, error)
                found.append(
                    Finding(
                        trial,
                        result,
                        result.lower_bound(error),
                        notes.seconds,
                        notes.violations,
                        notes.without_bug,
                    )
                )
        return found


def _played(drill: Drill) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        return tuple(drill(Path(folder)))
