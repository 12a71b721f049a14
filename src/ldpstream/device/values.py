"""The conversion of what an application hands over, whatever it is, into the index of a value.

A device without a usable value must not fall silent, repeat an old value or send bytes that no
value gives: each would reveal something (docs/guarantee.md). It reports the stream's `other` label
or, if there is none, a value drawn uniformly, through the same randomiser as any other.
"""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections.abc import Callable, Mapping

from ldpstream.domain import LONGEST_LABEL
from ldpstream.errors import LdpStreamError, Problem
from ldpstream.privacy.randomness import Source
from ldpstream.protocol.terms import Terms, Value

Warn = Callable[[LdpStreamError], None]
"""A callback that is told, once for each kind, what the application should fix."""

_log = logging.getLogger("ldpstream.device")


def log_warning(problem: LdpStreamError) -> None:
    """Write a warning to the log `ldpstream.device`."""
    _log.warning("%s", problem)


class HeldValue:
    """The value that a device holds now; there is none until `observe` or `follow` is called."""

    def __init__(self, warn: Warn = log_warning) -> None:
        self._read: Callable[[], Value | None] = lambda: None
        self._warn = warn
        self._told: set[str] = set()
        self._untold: LdpStreamError | None = None
        self.renamed: Mapping[str, str] = {}
        """What labels of earlier terms are called now."""

    def observe(self, value: Value | None) -> None:
        """Hold this value from now on."""
        self._read = lambda: value

    def follow(self, read: Callable[[], Value | None]) -> None:
        """Call a function for the value whenever a report is made."""
        self._read = read

    def place(self, terms: Terms, source: Source) -> int:
        """Return the index of the value held now, or of its substitute."""
        # Drawn for every report, used or not: the draws must not depend on the value.
        instead = source.below(len(terms.values))
        if terms.other is not None:
            instead = terms.place(terms.other)
        try:
            value = self._read()
            if value is None:
                return self._without(terms, "missing", instead)
            if isinstance(value, str):
                value = value[: LONGEST_LABEL + 1]  # a longer one takes no longer to be looked up
                value = self.renamed.get(value, value)
            return terms.place(value)
        except LdpStreamError:
            return self._without(terms, "none of the stream's", instead)
        except (Exception, CancelledError) as fault:  # any fault of the application's code
            return self._without(terms, f"unknown: {type(fault).__name__} was raised", instead)

    def _without(self, terms: Terms, what: str, instead: int) -> int:
        """Return the substitute, and keep a warning that does not contain the value given."""
        if what not in self._told:
            self._told.add(what)
            name = "a value drawn at random" if terms.other is None else "the label for others"
            self._untold = LdpStreamError(Problem.VALUE_UNUSABLE, what=what, instead=name)
        return instead

    def tell(self) -> None:
        """Warn about the value that was read last, if its problem is new.

        It is not called while a report is made: the application's code may take long, or fail, and
        a report must not depend on that.
        """
        problem, self._untold = self._untold, None
        if problem is not None:
            try:
                self._warn(problem)
            except (Exception, CancelledError):
                _log.exception("the application's warn callback failed; it was told: %s", problem)
