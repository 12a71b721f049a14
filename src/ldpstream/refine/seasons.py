"""The seasons that a filter tries once a period is found."""

from __future__ import annotations

from dataclasses import dataclass

from ldpstream.refine.linear import HARMONICS, SEASON_NOISES, Model, season

RICH, SECOND = 8, 3
"""Harmonics of a day with many peaks, and of a second cycle."""
FEW_NOISES = (1e-3, 0.03, 0.3)
"""Process noises of the level under a season of many shapes."""
SEASON_PRIOR, RICH_PRIOR, BOTH_PRIOR = 0.024, 0.003, 0.003
SAME = 0.05
"""Two periods that differ by less than this share are one, better known."""


@dataclass(frozen=True)
class Season:
    """A family of members: one for each process noise of the level."""

    prior: float
    noises: tuple[float, ...]
    cycles: tuple[tuple[float, int], ...]
    """Periods and their numbers of harmonics."""

    def models(self) -> list[Model]:
        return [season(noise, *self.cycles) for noise in self.noises]

    def continues(self, other: Season) -> bool:
        """Return whether states of the other season can go on with these periods."""
        pairs = zip(self.cycles, other.cycles, strict=False)
        return len(self.cycles) == len(other.cycles) and all(
            same(old, new) and count == before for (new, count), (old, before) in pairs
        )


def seasons(first: float, second: float | None) -> list[Season]:
    """Return a simple season, one of many harmonics, and one with a second cycle if there is one.

    >>> [season.cycles for season in seasons(24.0, 168.0)]
    [((24.0, 4),), ((24.0, 8),), ((24.0, 4), (168.0, 3))]
    """
    rich = min(RICH, int(first / 2))
    found = [
        Season(SEASON_PRIOR, SEASON_NOISES, ((first, HARMONICS),)),
        Season(RICH_PRIOR, FEW_NOISES, ((first, rich),)),
    ]
    if second is not None:
        both = ((first, HARMONICS), (second, SECOND))
        found.append(Season(BOTH_PRIOR, FEW_NOISES, both))
    return found


def same(known: float | None, found: float) -> bool:
    """Return whether two periods are one."""
    return known is not None and abs(found - known) <= SAME * known


def is_harmonic(period: float, first: float) -> bool:
    """Return whether a period is one of the harmonics that the first one has anyway."""
    times = round(first / period)
    return 1 <= times <= RICH and same(first / times, period)
