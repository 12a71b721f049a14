from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from typing import Self

from ldpstream.lab.tasks import Figures, Task, perform
from ldpstream.streams.stream import Stream


class Engine(ABC):
    """A place to run tasks. Figures do not depend on the choice of it."""

    @abstractmethod
    def run(
        self, tasks: Sequence[Task], streams: Mapping[str, Stream]
    ) -> Generator[tuple[Task, Figures]]:
        """Run the tasks, in any order; yield each with its figures when it is done.

        `streams` holds the streams that the tasks name, by fingerprint. Closing the generator stops
        the tasks that are still running.
        """

    def close(self) -> None:  # noqa: B027 - most engines hold nothing
        """Free the engine's resources; `with` does it. An engine may be used for many runs."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class InProcess(Engine):
    """An engine that runs tasks one after the other in this process: for tests and small grids."""

    def run(
        self, tasks: Sequence[Task], streams: Mapping[str, Stream]
    ) -> Generator[tuple[Task, Figures]]:
        for task in tasks:
            yield task, perform(task, streams[task.stream])
