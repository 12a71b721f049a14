"""The description of a planted bug."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass

from ldpstream.audit.drills import Drill
from ldpstream.oracles import Oracle
from ldpstream.privacy.randomness import Source, SystemSource

Plant = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Bug:
    """A bug: what is wrong, in words, and how it is planted on each side."""

    name: str
    words: str
    mechanism: str = ""
    """The mechanism under which it is attacked, if it is attacked."""
    on_collector: Plant = nullcontext
    on_device: Plant = nullcontext
    oracle: Oracle = Oracle.GRR
    source: Callable[[], Source] = SystemSource
    epsilon: str = "1"
    """The promised epsilon, which is exceeded. A leak in many small reports needs a larger one."""
    worlds: int = 1
    """The worlds in one pass: more for a leak that few reports show."""
    drill: Drill | None = None
    """A scenario that shows it exactly, in place of an attack."""

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Plant the bug on both sides, and remove it at the end."""
        with ExitStack() as both:
            both.enter_context(self.on_collector())
            both.enter_context(self.on_device())
            yield
