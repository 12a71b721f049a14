"""What a planted bug is."""

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
    """What is wrong, in words, and how each side is made to do it."""

    name: str
    words: str
    mechanism: str = ""
    """Under which it is attacked, if it is."""
    on_collector: Plant = nullcontext
    on_device: Plant = nullcontext
    oracle: Oracle = Oracle.GRR
    source: Callable[[], Source] = SystemSource
    epsilon: str = "1"
    """Promised, and exceeded. A leak in many small reports is clearer at a larger one."""
    worlds: int = 1
    """Worlds a pass: more for a leak that few reports show."""
    drill: Drill | None = None
    """A scenario that shows it without any doubt, in place of an attack."""

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Plant it on both sides."""
        with ExitStack() as both:
            both.enter_context(self.on_collector())
            both.enter_context(self.on_device())
            yield
