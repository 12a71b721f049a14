"""Bugs of values: old ones that are repeated, and silence that tells of them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from unittest.mock import patch

from ldpstream.audit import drills
from ldpstream.audit.planted.bug import Bug
from ldpstream.device.values import HeldValue
from ldpstream.privacy.randomness import Source
from ldpstream.protocol.terms import Terms


def _last_known() -> AbstractContextManager[object]:
    honest = HeldValue.place

    def place(self: HeldValue, terms: Terms, source: Source) -> int:
        read = self._read
        value = read()
        self._read = lambda: vars(self).get("_known", 0) if value is None else value
        try:
            vars(self)["_known"] = honest(self, terms, source)
        finally:
            self._read = read
        return int(vars(self)["_known"])

    return patch.object(HeldValue, "place", place)


def _silent() -> AbstractContextManager[object]:
    def place(self: HeldValue, terms: Terms, source: Source) -> int:
        value = self._read()
        return source.below(len(terms.values)) if value is None else terms.place(value)

    return patch.object(HeldValue, "place", place)


VALUES = (
    Bug(
        "the last known value",
        "a value that is not known any more is reported again and again",
        on_device=_last_known,
        drill=drills.value_gets_unknown,
    ),
    Bug(
        "silence about a value",
        "a value that the stream does not have ends the run",
        on_device=_silent,
        drill=drills.unusable_value,
    ),
)
