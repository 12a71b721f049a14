"""The check of what a store has released, before it is served again."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ldpstream.collector.clock import ticks
from ldpstream.collector.store.chain import EVERY
from ldpstream.collector.store.contract import Store

TELL_SECONDS = 5.0

_log = logging.getLogger(__name__)


def check_releases(store: Store, streams: Sequence[str]) -> None:
    """Follow the chain of each stream; refuse the first that does not hold.

    The list of streams is first: one that was removed as a whole would begin anew.
    """
    for stream in (EVERY, *streams):
        store.check_releases(stream, _ProgressLog(stream)).refuse_damage()


class _ProgressLog:
    """Logs how far a check has come, if it takes long: nobody is served meanwhile."""

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._told = ticks()

    def __call__(self, number: int) -> None:
        if ticks() - self._told >= TELL_SECONDS:
            self._told = ticks()
            facts = {"stream": self._stream, "number": number}
            _log.warning("still checking releases before they are served", extra=facts)
