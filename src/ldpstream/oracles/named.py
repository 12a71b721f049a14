"""Registries whose members are found by the names that people write."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from ldpstream.errors import Mistake, Problem


class Named(StrEnum):
    """An enum of oracles, or of randomisers of numbers, by name."""

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the member of this name, in whatever case; refuse an unknown one."""
        try:
            return cls(name.lower())
        except ValueError:
            raise Mistake(Problem.ORACLE_UNKNOWN, given=name, known=", ".join(cls)) from None
