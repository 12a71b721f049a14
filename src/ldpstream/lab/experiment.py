"""Experiments: mechanisms x streams x epsilons x windows x repeats, run anywhere, cached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from itertools import product

from ldpstream.errors import Mistake, Problem
from ldpstream.lab.cache import ResultCache
from ldpstream.lab.central import CENTRAL
from ldpstream.lab.engines import Engine, engine_for
from ldpstream.lab.results import Results, Row
from ldpstream.lab.simulation import check_repeats, settings_of
from ldpstream.lab.tasks import Figures, Task, task
from ldpstream.mechanisms.queries import HISTOGRAM
from ldpstream.mechanisms.registry import names
from ldpstream.mechanisms.settings import RunOptions
from ldpstream.streams.stream import Stream

__all__ = ["Experiment", "ResultCache", "Results", "Task"]


@dataclass(frozen=True)
class Experiment:
    """A grid of runs.

    `mechanisms` are names in `mechanisms.registry`, or the references of `lab.central`.

    >>> from ldpstream.streams.synthetic import sin
    >>> streams = [sin(users=20_000, timestamps=60)]
    >>> table = Experiment(streams, ["lpu", "central-ba"], windows=[10], repeats=2).run()
    >>> for row in table.summary():
    ...     print(row["mechanism"], row["window"], row["repeats"], row["mre"] < 0.5)
    lpu 10 2 True
    central-ba 10 2 True
    """

    streams: Sequence[Stream]
    mechanisms: Sequence[str]
    epsilons: Sequence[float | str] = (1,)
    windows: Sequence[int] = (20,)
    repeats: int = 3
    options: RunOptions = RunOptions()  # noqa: RUF009 - frozen
    seed: int = 0

    def tasks(self) -> list[Task]:
        """Return the tasks of all runs; one that cannot run is refused before any is started."""
        return [task for _, task in self._runs()]

    def run(
        self,
        *,
        engine: Engine | None = None,
        cache: ResultCache | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Results:
        """Run the tasks that are not in the cache; the rows come in the order of `tasks`.

        Without an engine, a short experiment runs in this process and a long one on all cores.
        `progress` is called with the number of tasks that were just done.
        """
        runs = list(self._runs())
        done = progress or (lambda number: None)
        unique = {task.key: task for _, task in runs}
        figures = {} if cache is None else cache.known(unique)
        times = Counter(task.key for _, task in runs)
        done(sum(times[key] for key in figures))
        missing = [task for key, task in unique.items() if key not in figures]
        # Closed at once, not at garbage collection: Ctrl-C must end the workers.
        with closing(self._fresh(missing, engine)) as arriving:
            for key, fresh in arriving:
                figures[key] = fresh
                if cache is not None:
                    cache.put(key, fresh)
                done(times[key])
        return Results([_row(stream, task, figures[task.key]) for stream, task in runs])

    def _fresh(self, tasks: list[Task], engine: Engine | None) -> Generator[tuple[str, Figures]]:
        if not tasks:
            return
        streams = {stream.fingerprint: stream for stream in self.streams}
        # An engine that the caller passed in stays open: it may serve more runs.
        with (
            nullcontext(engine) if engine else engine_for(tasks, streams) as used,
            closing(used.run(tasks, streams)) as arriving,
        ):
            for task, figures in arriving:
                yield task.key, figures

    def _runs(self) -> Iterator[tuple[Stream, Task]]:
        check_repeats(self.repeats, self.seed)
        self._refuse_central()
        grid = product(self.streams, self.mechanisms, self.epsilons, self.windows)
        for stream, mechanism, epsilon, window in grid:
            settings = settings_of(stream, epsilon, window, self.options)
            for repeat in range(self.repeats):
                one = task(stream, mechanism, settings, seed=self.seed, repeat=repeat)
                if repeat == 0:
                    one.check()
                yield stream, one

    def _refuse_central(self) -> None:
        """Refuse the references of `lab.central` for any query but a histogram."""
        central = [name for name in self.mechanisms if name.lower() in CENTRAL]
        if central and self.options.query != HISTOGRAM:
            raise Mistake(
                Problem.OPTION,
                option="the mechanism",
                given=", ".join(central),
                expected="one that can be asked for a number: " + ", ".join(names()),
            )


def _row(stream: Stream, task: Task, figures: Figures) -> Row:
    settings = task.settings
    return {
        "stream": stream.name,
        "fingerprint": task.stream,
        "mechanism": task.mechanism,
        **settings.columns(),  # `figures` then replaces the oracle by the one used
        "asked_oracle": "auto" if settings.oracle is None else settings.oracle.value,
        "epsilon": float(settings.epsilon),
        "window": settings.window,
        "users": settings.users,
        "timestamps": stream.timestamps,
        "labels": settings.labels,
        "seed": task.seed,
        "repeat": task.repeat,
        **figures,
    }
