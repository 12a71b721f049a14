"""The promise of a stream's terms in words and odds, as the page, the API and a device say it.

These words are for people: nothing is decided by the rounded numbers in them.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from ldpstream.protocol.strata import STANDARD
from ldpstream.protocol.terms import Terms

_UNITS = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1000, "second"))


@dataclass(frozen=True)
class PromiseInWords:
    """What is promised to a device at one level of privacy."""

    level: str
    """The name of the level; empty for the stream's own."""
    called: str
    epsilon_nano: int
    window: int
    time: str
    """How long a window takes."""
    sentence: str
    """The promise as a factor of odds."""
    explanation: str
    """The same for who asks: the technical term, and how sure an observer can be."""
    summary: str
    """The same in a few words, for a list to choose from."""

    @classmethod
    def of(cls, terms: Terms) -> PromiseInWords:
        """Put the promise of these terms, at the level at which they are seen, into words."""
        factor = math.exp(terms.epsilon_nano / 1e9)
        belief = factor / (factor + 1)
        digits = 2 if belief > 0.995 else 0
        epsilon = plain(terms.epsilon_nano / 1e9)
        time = lasting(terms.window * terms.interval_ms)
        changes = significant(factor)
        return cls(
            level=terms.level,
            called=terms.level or STANDARD,
            epsilon_nano=terms.epsilon_nano,
            window=terms.window,
            time=time,
            sentence=(
                f"Whatever a device sends in any {terms.window:,} timestamps ({time}), it changes"
                f" the odds between any two of its values by a factor of at most {changes}."
            ),
            explanation=(
                f"That is w-event local differential privacy with ε = {epsilon} and"
                f" w = {terms.window:,}. Say someone holds two values of yours to be equally"
                " likely, and then sees every byte your device sends in that time: they can be at"
                f" most {100 * belief:.{digits}f} % sure of one. The device keeps the account"
                " itself and refuses what would exceed it."
            ),
            summary=f"epsilon {epsilon} in any {time}: odds change by at most {changes}",
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def promises(terms: Terms) -> list[PromiseInWords]:
    """Return the promise at each level of privacy, the stream's own first."""
    return [PromiseInWords.of(one) for one in terms.strata]


def told_openly(terms: Terms) -> str | None:
    """Say which attributes are sent beside every report, unprotected, or return None if none are.

    >>> from ldpstream.protocol.terms import Terms
    >>> terms = {
    ...     "version": 3, "stream": "a", "query": "mean", "low": "0", "high": "1", "steps": 1,
    ...     "epsilon_nano": 10**9, "window": 20, "interval_ms": 60000, "start_ms": 0,
    ...     "oracle": "duchi", "selection": "slots", "deadline_ms": 54000,
    ...     "attributes": [{"name": "country", "values": ["de"]}]}
    >>> (told_openly(Terms.read(terms)) or "").partition(".")[0]
    'Every report says openly of its device: country (de, other)'
    """
    if terms.attributes is None:
        return None
    told = "; ".join(f"{one.name} ({', '.join(one.values)})" for one in terms.attributes.each)
    return (
        f"Every report says openly of its device: {told}. The collector sees these attributes as"
        " they are: they are public, no part of the value, and nothing protects them."
    )


def lasting(ms: int) -> str:
    """Write a length of time as people say it, with two digits that matter.

    >>> lasting(3_000), lasting(86_400_000), lasting(5_400_000), lasting(250)
    ('3 seconds', '1 day', '1.5 hours', '250 ms')
    """
    if ms < 1000:
        return f"{ms} ms"
    size, unit = next((size, unit) for size, unit in _UNITS if ms >= size)
    number = plain(float(f"{ms / size:.2g}"))
    return f"{number} {unit}{'' if number == '1' else 's'}"


def significant(number: float) -> str:
    """Write a number with three digits that matter, and a large one with all that it has.

    >>> significant(2.71828), significant(20.0), significant(22026.4)
    ('2.72', '20', '22,026')
    """
    return f"{number:,.0f}" if number >= 1000 else plain(float(f"{number:.3g}"))


def plain(number: float) -> str:
    """Write a number without an exponent, and without zeros that say nothing.

    >>> plain(2.0), plain(0.05), plain(0.000000001)
    ('2', '0.05', '0.000000001')
    """
    return f"{number:.9f}".rstrip("0").rstrip(".")
