"""The exact output distribution of a randomiser, found by running it under every possible draw."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import TypeVar

from ldpstream.privacy.randomness import Source

Outcome = TypeVar("Outcome", bound=Hashable)


def distribution(
    draw: Callable[[Source], Outcome],
) -> dict[Outcome, Fraction]:
    """Return Pr[outcome] for each outcome of `draw`, as fractions that sum to 1.

    >>> two_coins = distribution(lambda source: source.coin(1, 3) + source.coin(1, 3))
    >>> {heads: str(share) for heads, share in sorted(two_coins.items())}
    {0: '4/9', 1: '4/9', 2: '1/9'}
    """
    outcomes: dict[Outcome, Fraction] = {}
    unexplored: list[list[int]] = [[]]
    while unexplored:
        path = _Path(unexplored.pop())
        outcome = draw(path)
        outcomes[outcome] = outcomes.get(outcome, Fraction(0)) + path.probability
        unexplored.extend(path.siblings)
    return outcomes


class _Path:
    """A source that follows given answers, then answers 0 and records the untried alternatives."""

    def __init__(self, answers: list[int]) -> None:
        self._answers = answers
        self._step = 0
        self.siblings: list[list[int]] = []
        self.probability = Fraction(1)

    def coin(self, favour: int, total: int) -> bool:
        if favour in (0, total):
            return favour == total
        heads = self._answer(2) == 1
        self.probability *= Fraction(favour if heads else total - favour, total)
        return heads

    def below(self, bound: int) -> int:
        self.probability /= bound
        return self._answer(bound)

    def _answer(self, choices: int) -> int:
        if self._step == len(self._answers):
            self.siblings += [[*self._answers, other] for other in range(1, choices)]
            self._answers = [*self._answers, 0]
        answer = self._answers[self._step]
        self._step += 1
        return answer
