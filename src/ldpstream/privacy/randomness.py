"""Where a device's randomness comes from, as two exact questions: a coin and a die."""

from __future__ import annotations

import secrets
from typing import Protocol


class Source(Protocol):
    """A source of exact random draws.

    Randomisers ask these two questions and nothing else, and always the same number of times
    whatever the answers. The device answers them from the operating system; the audit answers them
    in every possible way (`privacy/enumeration.py`).
    """

    def coin(self, favour: int, total: int) -> bool:
        """True with probability exactly favour/total."""
        ...

    def below(self, bound: int) -> int:
        """One of 0 .. bound-1, each with probability exactly 1/bound."""
        ...


def either(heads: bool, this: int, that: int) -> int:
    """Take `this` for heads, `that` for tails: by the same steps, so that time does not tell.

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
