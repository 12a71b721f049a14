"""The levels of privacy that the users of a fleet choose."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from ldpstream.errors import Mistake, Problem
from ldpstream.protocol.strata import STANDARD, is_level_name

EXPECTED = "NAME:SHARE,..., such as careful:0.3,open:0.2, with shares of at most 1 in all"


@dataclass(frozen=True)
class LevelShares:
    """Names of levels with the share of users that choose each; the others take the stream's own.

    >>> levels = LevelShares.read("careful:0.5")
    >>> sorted({levels.of(user, seed=1) for user in range(20)})
    ['', 'careful']
    """

    shares: tuple[tuple[str, float], ...] = ()

    @classmethod
    def read(cls, text: str) -> LevelShares:
        """Parse the form of the command line."""
        parts = [part.partition(":") for part in text.split(",")] if text else []
        try:
            shares = tuple((name.strip(), float(share)) for name, _, share in parts)
        except ValueError:
            shares = (("", 2.0),)
        total = sum(share for _, share in shares)
        named = all(is_level_name(name) or name == STANDARD for name, _ in shares)
        if not named or not 0 <= total <= 1 + 1e-9 or any(share < 0 for _, share in shares):
            raise Mistake(Problem.OPTION, option="--levels", given=text, expected=EXPECTED)
        return cls(tuple((name.replace(STANDARD, ""), share) for name, share in shares))

    def of(self, user: int, seed: int) -> str:
        """Return the level of a user, the same in every run with this seed."""
        drawn = Random(f"{seed} {user}").random() if self.shares else 1.0  # noqa: S311
        for name, share in self.shares:
            drawn -= share
            if drawn < 0:
                return name
        return ""
