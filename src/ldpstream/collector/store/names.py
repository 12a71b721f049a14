"""The names of released figures: those of the terms that were in force at the release."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ldpstream.collector.store.contract import Store, StoredRelease
from ldpstream.mechanisms.following import MOST_LISTED
from ldpstream.protocol.terms import Terms


@dataclass(frozen=True)
class ReleasedNames:
    """The labels of each version of a stream's terms: the same label is the same name.

    >>> names = ReleasedNames((("a", "b"), ("b", "c")))
    >>> names.joined
    ('b', 'c', 'a')

    A release of texts has names of its own.
    """

    versions: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, versions: Iterable[Terms]) -> ReleasedNames:
        return cls(tuple(terms.names for terms in versions))

    @classmethod
    def read(cls, versions: Sequence[dict[str, Any]]) -> ReleasedNames:
        """Read the names out of terms as they are stored or sent, the first version first."""
        return cls.of(map(Terms.read, versions))

    def at(self, release: StoredRelease) -> tuple[str, ...]:
        """Return the names of a release's figures, in order."""
        own = release.content.get("labels")
        return self.versions[release.terms_version - 1] if own is None else tuple(own)

    @property
    def latest(self) -> tuple[str, ...]:
        return self.versions[-1]

    @cached_property
    def joined(self) -> tuple[str, ...]:
        """The names of all versions: those of the latest first, then those that are gone."""
        names = (name for version in reversed(self.versions) for name in version)
        return tuple(dict.fromkeys(names))

    def columns(self, rows: Iterable[StoredRelease]) -> tuple[str, ...]:
        """Return the names of all columns of these releases."""
        own = (name for row in rows for name in row.content.get("labels", ()))
        return tuple(dict.fromkeys((*self.joined, *own)))

    @property
    def most(self) -> int:
        """The most figures that a release may have."""
        return max(len(one) or MOST_LISTED for one in self.versions)


class StoredNames:
    """The names of a stream's releases, looked up in the store when there are new terms."""

    def __init__(self, store: Store, stream: str) -> None:
        self._store = store
        self._stream = stream
        self._known = ReleasedNames(())

    def of(self, releases: Sequence[StoredRelease]) -> ReleasedNames:
        """Return names that these releases can be read by."""
        newest = max((one.terms_version for one in releases), default=1)
        if newest > len(self._known.versions):
            self._known = ReleasedNames.read(self._store.versions(self._stream))
        return self._known

    def at(self, release: StoredRelease) -> tuple[str, ...]:
        """Return the names of a release's figures, in order."""
        return self.of([release]).at(release)
