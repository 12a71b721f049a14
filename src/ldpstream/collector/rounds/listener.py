"""The interface of those who are told of changes in a stream."""

from __future__ import annotations

from collections.abc import Sequence

from ldpstream.collector.rounds.announcement import AnnouncedRounds
from ldpstream.collector.store.contract import NewRound, RoundState, StoredRelease
from ldpstream.protocol.terms import Terms


class Listener:
    """A listener is told of each change once it is durable. This one ignores all of them."""

    def announced(self, announcement: AnnouncedRounds) -> None:
        """The rounds that are open have changed."""

    def changed(self, changed: NewRound, state: RoundState) -> None:
        """A round that this collector leads has reached this state."""

    def counted(self, stratum: Terms, reports: int) -> None:
        """A round that this collector leads was counted, under these terms at their level."""

    def committed(self, releases: Sequence[StoredRelease]) -> None:
        """Releases were made by this collector, in order of t."""

    def released(self, latest: StoredRelease) -> None:
        """Releases were made by another collector, up to this one."""
