from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from types import TracebackType
from typing import Self

from ldpstream.lab.tasks import Figures, Task, perform
from ldpstream.streams.stream import Stream


class Engine(ABC):
    """Where tasks are run. Figures do not depend on it."""

    @abstractmethod
    def run(
        self, tasks: Sequence[Task], streams: Mapping[str, Stream]
    ) -> Generator[tuple[Task, Figures]]:
        """Run the tasks, in any order; each comes back with its figures when it is done.

        `streams` holds, by fingerprint, those that the tasks name. A consumer that goes away stops
        what is still under way.
        """

    def close(self) -> None:  # noqa: B027 - most engines hold nothing
        """Give back what the engine holds: `with` does it. An engine may be used for many runs."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class InProcess(Engine):
    """One after the other, here: for tests and small grids."""

    def run(
        self, tasks: Sequence[Task], streams: Mapping[str, Stream]
    ) -> Generator[tuple[Task, Figures]]:
        for task in tasks:
            yield task, perform(task, streams[task.stream])
