"""Small experiments, engines that count and stop, and a mechanism of a user's own."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ldpstream.domain import Domain
from ldpstream.lab.engines import InProcess
from ldpstream.lab.experiment import Experiment
from ldpstream.lab.results import Results
from ldpstream.lab.tasks import Figures, Task
from ldpstream.streams.events import EventsStream
from ldpstream.streams.stream import Stream
from ldpstream.streams.synthetic import log, sin
from ldpstream.streams.writer import EventsWriter

OWN_MECHANISM = """
from ldpstream.mechanisms.division import PopulationDivision
from ldpstream.mechanisms.mechanism import Mechanism
from ldpstream.mechanisms.registry import register

class EveryOther(Mechanism):
    def decide(self, t):
        if t % 2:
            return self.approximate(t)
        fresh = yield self.ask_publication(t, self.division.total * 2 // (self.window + 1))
        return self.publish(t, fresh)

register("every-other", EveryOther, PopulationDivision)
"""


def small_grid(**changes: Any) -> Experiment:
    options: dict[str, Any] = {
        "streams": [sin(users=2000, timestamps=40), log(users=3000, timestamps=30)],
        "mechanisms": ["lpa", "lbd", "central-ba"],
        "epsilons": [1, "0.5"],
        "windows": [5],
        "repeats": 2,
    }
    return Experiment(**options | changes)


def prepared_stream(folder: Path, seed: int = 0) -> EventsStream:
    """A stream of events on disk: 500 users, 30 timestamps."""
    folder.mkdir(exist_ok=True)
    rng, events, domain = np.random.default_rng(seed), 4000, Domain.of(["none", "a", "b"])
    with EventsWriter(folder, domain, 500, 30) as writer:
        t = rng.integers(1, 31, events)
        writer.add(t, rng.integers(500, size=events), rng.integers(1, 3, events), t)
        return writer.finish("prepared", "key")


def figures(results: Results) -> list[dict[str, Any]]:
    """All but how long it took."""
    return [{k: v for k, v in row.items() if k != "seconds"} for row in results.rows]


def write_plugin(folder: Path, text: str = OWN_MECHANISM) -> Path:
    path = folder / "own.py"
    path.write_text(text)
    return path


class Counting(InProcess):
    """Runs in this process, remembers what it ran, and is interrupted after so many."""

    def __init__(self, interrupted_after: int | None = None) -> None:
        self.ran: list[str] = []
        self.interrupted_after = interrupted_after

    def run(
        self, tasks: Sequence[Task], streams: Mapping[str, Stream]
    ) -> Generator[tuple[Task, Figures]]:
        for done in super().run(tasks, streams):
            if len(self.ran) == self.interrupted_after:
                raise KeyboardInterrupt
            self.ran.append(done[0].key)
            yield done
