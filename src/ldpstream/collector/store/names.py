"""The names of released figures: those of the terms that were in force at the release."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ldpstream.collector.store.contract import Release
from ldpstream.protocol.terms import Terms


@dataclass(frozen=True)
class ReleasedNames:
    """The labels of each version of a stream's terms: the same label is the same name.

    >>> names = ReleasedNames((("a", "b"), ("b", "c")))
    >>> names.joined
    ('b', 'c', 'a')
    """

    versions: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, versions: Iterable[Terms]) -> ReleasedNames:
        return cls(tuple(terms.names for terms in versions))

    @classmethod
    def read(cls, versions: Sequence[dict[str, Any]]) -> ReleasedNames:
        """Read the names out of terms as they are stored or sent, the first version first."""
        return cls.of(map(Terms.read, versions))

    def at(self, release: Release) -> tuple[str, ...]:
        """Return the names of a release's figures, in order."""
        return self.versions[release.terms_version - 1]

    @property
    def latest(self) -> tuple[str, ...]:
        return self.versions[-1]

    @cached_property
    def joined(self) -> tuple[str, ...]:
        """The names of all versions: those of the latest first, then those that are gone."""
        names = (name for version in reversed(self.versions) for name in version)
        return tuple(dict.fromkeys(names))

    @property
    def most(self) -> int:
        """The most figures that a release may have."""
        return max(map(len, self.versions))
