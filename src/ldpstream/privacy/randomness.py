"""The source of a device's randomness, with two exact draws: a coin and a die."""

from __future__ import annotations

import secrets
from typing import Protocol


class Source(Protocol):
    """A source of exact random draws.

    Randomisers use these two draws and nothing else, and always the same number of them, whatever
    their results. A device draws from the operating system; the audit goes through all possible
    results (`privacy/enumeration.py`).
    """

    def coin(self, favour: int, total: int) -> bool:
        """Return true with probability exactly favour/total."""
        ...

    def below(self, bound: int) -> int:
        """Return one of 0 .. bound-1, each with probability exactly 1/bound."""
        ...


def either(heads: bool, this: int, that: int) -> int:
    """Return `this` for heads and `that` for tails, by the same steps: timing reveals nothing.

    >>> either(True, 1, 2), either(False, 1, 2)
    (1, 2)
    """
    return (that, this)[heads]


class SystemSource:
    """The operating system's CSPRNG.

    >>> SystemSource().below(6) in range(6)
    True
    """

    def coin(self, favour: int, total: int) -> bool:
        return secrets.randbelow(total) < favour

    def below(self, bound: int) -> int:
        return secrets.randbelow(bound)
