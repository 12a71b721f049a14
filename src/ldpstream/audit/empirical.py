"""The attack: many secrets, whole transcripts, guesses, and what they prove about epsilon.

Results are looked at once, when the running is over: how long it ran never depends on them.
"""

from __future__ import annotations

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
from ldpstream.audit.planted import Bug
from ldpstream.audit.world import Scenario, World
from ldpstream.collector.config import Selection
from ldpstream.fleet.folders import memory_folder
from ldpstream.mechanisms.registry import PAPER
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon

MECHANISMS = (*PAPER, "lpf")
ERROR = 1e-6
"""The chance that any bound of an audit is wrong, all of them together."""
EPSILON = "1"
WORLDS = 2
"""Of a mechanism without a bug, in one pass: on a roster and by open selection."""

Tell = Callable[[str, int, int], None]
"""What is under way, what is done, and of how much."""


@dataclass(frozen=True)
class Size:
    """How large worlds are. A world has targets x windows secrets."""

    targets: int = 100
    crowd: int = 120
    windows: int = 10
    window: int = 2


@dataclass(frozen=True)
class Trial:
    """A mechanism to attack as it is, or with a bug."""

    mechanism: str
    bug: Bug | None = None

    @property
    def name(self) -> str:
        return self.bug.name if self.bug else self.mechanism

    @property
    def epsilon(self) -> Epsilon:
        return Epsilon.of(self.bug.epsilon if self.bug else EPSILON)

    @property
    def worlds(self) -> int:
        """In one pass, after which a bug is all but sure to be found."""
        return self.bug.worlds if self.bug else WORLDS

    def scenario(self, size: Size, number: int) -> Scenario:
        """Worlds take turns: a window with a secret starts anywhere in the mechanism's cycle."""
        turn = number + number // size.window
        return Scenario(
            self.mechanism,
            self.bug.oracle if self.bug else Oracle.GRR,
            self.epsilon,
            size.window,
            tuple(Selection)[turn % len(Selection)],
            offset=number % size.window,
            targets=size.targets,
            crowd=size.crowd,
            windows=size.windows,
        )

    def planting(self) -> AbstractContextManager[object]:
        return self.bug.planted() if self.bug else nullcontext()


def all_trials() -> tuple[Trial, ...]:
    honest = tuple(Trial(name) for name in MECHANISMS)
    return honest + tuple(Trial(bug.mechanism, bug) for bug in planted.BUGS)


@dataclass(frozen=True)
class Finding:
    """What an attack came to."""

    trial: Trial
    score: Score
    lower_bound: float
    seconds: float

    @property
    def exceeds(self) -> bool:
        """Whether epsilon is proven to be larger than it should be."""
        return self.lower_bound > float(self.trial.epsilon)

    @property
    def as_it_should_be(self) -> bool:
        """A bug is found; a mechanism without one is not accused."""
        return self.exceeds == (self.trial.bug is not None)


@dataclass(frozen=True)
class _Notes:
    """What the attacker has gathered in one trial; replaced as a whole, if at all."""

    evidence: tuple[float, ...] = ()
    truth: tuple[bool, ...] = ()
    worlds: int = 0
    seconds: float = 0.0


class Campaign:
    """Attacks trial after trial, in passes over all of them."""

    def __init__(self, trials: tuple[Trial, ...], size: Size | None = None) -> None:
        self.size = size or Size()
        self._trials = trials
        self._notes = {trial: _Notes() for trial in trials}
        self.stopped = False

    def run(self, tell: Tell = lambda stage, done, total: None) -> None:
        """One pass; Ctrl-C ends it early, with what there is."""
        jobs = self._one_pass()
        for done, trial in enumerate(jobs):
            tell(trial.name, done, len(jobs))
            if not self._attack_unless_stopped(trial):
                return

    def run_for(self, seconds: float, tell: Tell = lambda stage, done, total: None) -> None:
        """One pass, then passes over the mechanisms without a bug until the time is up."""
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
        notes = self._notes[trial]
        began = time.monotonic()
        scenario = trial.scenario(self.size, notes.worlds)
        with tempfile.TemporaryDirectory(dir=memory_folder()) as folder, trial.planting():
            world = World(scenario, Path(folder), trial.bug.source() if trial.bug else None)
            world.live()
        self._notes[trial] = _Notes(
            (*notes.evidence, *chain(*evidence(scenario, world.wire))),
            (*notes.truth, *map(bool, chain(*world.bits))),
            notes.worlds + 1,
            notes.seconds + time.monotonic() - began,
        )

    @property
    def unfinished(self) -> list[str]:
        """Trials that have not had one pass: they are too short to say anything."""
        return [trial.name for trial, notes in self._notes.items() if notes.worlds < trial.worlds]

    def findings(self) -> list[Finding]:
        """Of the others. The chance of a wrong bound is shared among all."""
        error = ERROR / len(self._trials)
        found = []
        for trial, notes in self._notes.items():
            if notes.worlds >= trial.worlds:
                result = score(notes.evidence, notes.truth, error)
                found.append(Finding(trial, result, result.lower_bound(error), notes.seconds))
        return found
