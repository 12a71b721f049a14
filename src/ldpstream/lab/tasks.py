"""One run of one mechanism on one stream, as a value: it can be sent, compared and looked up."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.lab import fingerprint
from ldpstream.lab.central import CENTRAL, LAPLACE, TrustedFleet, build_central
from ldpstream.lab.metrics import events, roc, roc_per_label
from ldpstream.lab.personal import PERSONAL, build_personal
from ldpstream.lab.simulation import fleet_of, oracle_of, population_of, run
from ldpstream.mechanisms.mechanism import Mechanism
from ldpstream.mechanisms.registry import Recipe, recipe
from ldpstream.mechanisms.settings import Settings
from ldpstream.streams.stream import Stream

Figures: TypeAlias = dict[str, Any]
"""The results of a run, as plain JSON."""


@dataclass(frozen=True)
class Task:
    """The parameters that, with the code, determine the figures of a run."""

    stream: str
    """Fingerprint of the stream: of its content, not of its name."""
    mechanism: str
    recipe: Recipe | None
    """How to build the mechanism, as a worker's registry may not know it; None for CENTRAL and
    PERSONAL."""
    settings: Settings
    seed: int
    repeat: int

    @property
    def classes(self) -> tuple[type, ...]:
        """The classes of the mechanism that may be a user's own."""
        return () if self.recipe is None else (self.recipe.allocation, self.recipe.division)

    @cached_property
    def key(self) -> str:
        """The key of the figures in the cache: equal keys mean equal figures."""
        query = type(self.settings.query)
        return hashlib.sha256(
            json.dumps(
                {
                    "code": fingerprint.of_package(),
                    "stream": self.stream,
                    "mechanism": [_full_name(kind) for kind in self.classes] or self.mechanism,
                    "filtered": self.recipe is not None and self.recipe.filtered,
                    "parameters": repr(self.recipe and self.recipe.parameters),
                    "their code": [fingerprint.of_class(kind) for kind in self.classes],
                    "settings": asdict(self.settings),
                    "query": [_full_name(query), fingerprint.of_class(query)],
                    "seed": self.seed,
                    "repeat": self.repeat,
                },
                sort_keys=True,
            ).encode()
        ).hexdigest()

    def generator(self) -> np.random.Generator:
        """Return the generator of seed and repeat alone; repeat r is run r of `simulate`."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(self.repeat,)))

    def __str__(self) -> str:
        settings = self.settings
        return (
            f"{self.mechanism} on {settings.users} users, {settings.labels} labels, "
            f"epsilon {settings.epsilon}, window {settings.window}, repeat {self.repeat}"
        )

    def check(self) -> None:
        """Refuse now what would be refused at run time: too few users, too little budget."""
        if self.mechanism in CENTRAL:
            build_central(self.mechanism, self.settings, self.generator())
        else:
            self.build()

    def build(self) -> Mechanism:
        """Return the mechanism, if it is not one of CENTRAL."""
        if self.recipe is None:
            return build_personal(self.mechanism, self.settings)
        return self.recipe.build(self.settings)


def task(
    stream: Stream, mechanism: str, settings: Settings, *, seed: int = 0, repeat: int = 0
) -> Task:
    """Return the task of a named mechanism on a stream."""
    name = mechanism.lower()
    made_of = None if name in CENTRAL or name in PERSONAL else recipe(name)
    return Task(stream.fingerprint, name, made_of, settings, seed, repeat)


def perform(task: Task, stream: Stream) -> Figures:
    """Run a task on its stream; return the figures, with the processor time that it took."""
    started = time.thread_time()
    rng = task.generator()
    stream = population_of(stream, task.settings)
    if task.mechanism in CENTRAL:
        central = build_central(task.mechanism, task.settings, rng)
        oracle, done = LAPLACE, run(stream, central, rng, fleet=TrustedFleet(central.division))
    else:
        mechanism = task.build()
        oracle = oracle_of(mechanism, task.settings)
        fleet = fleet_of(mechanism, task.settings, rng)
        query, lag = task.settings.query, task.settings.lag
        done = run(stream, mechanism, rng, fleet=fleet, query=query, lag=lag)
    return {
        "oracle": oracle,
        **done.metrics.plain(),
        "roc": _listed(roc(*events(done.truth, done.released))),
        "roc_per_label": _listed(roc_per_label(done.truth, done.released)),
        "seconds": time.thread_time() - started,
    }


def _listed(curve: Floats | None) -> list[float] | None:
    return None if curve is None else curve.tolist()


def _full_name(kind: type) -> str:
    # A script's __main__ has another name in its workers, and its file's name when imported.
    module = "" if kind.__module__ in ("__main__", "__mp_main__") else kind.__module__
    return f"{module}.{kind.__qualname__}"
