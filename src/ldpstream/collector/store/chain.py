"""The chain of a stream's releases: a keyed hash that each release continues.

The link of a release is an HMAC over the link before it and the release's own bytes. The last link
stands in the stream's row, under a seal: an HMAC over all of the row that is served or released
from. So whoever lacks the key can neither change a release nor remove, add or exchange some, not
even the latest. A prefix may be pruned: the row then names the link up to which releases are gone.

No I/O here. What is hashed is the text that is stored, which both stores keep byte by byte.
"""

from __future__ import annotations

import hmac
import json
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import NamedTuple

from ldpstream.errors import Mistake, Problem

EVERY = "*"
"""In place of a stream's name: the list of all streams. No stream can be called so."""
PAGE = 10_000
"""Releases that are looked at before progress is told."""
BROKEN_SEAL = "the stream's terms, state or checkpoint were changed"

Progress = Callable[[int], None]
"""Called now and then with the number of releases that have been looked at."""


def ignore(number: int) -> None:
    """Show no progress."""


class ChainRow(NamedTuple):
    """A release as it is stored, without its link."""

    t: int
    at_ms: int
    content: bytes
    asked: int
    received: int
    missed: bool


SummaryRow = tuple[int, int, int, int, str]
"""A summary as it is stored: first and last t, the start and length of its period, content."""
LinkedRow = tuple[int, int, bytes, int, int, bool, bytes]
"""A `ChainRow`, and its link."""


@dataclass(frozen=True)
class ChainEnds:
    """The part of a stream's row that is sealed: both ends of its chain, and what goes on."""

    terms: bytes
    """Those of all versions, a line each."""
    mechanism: bytes | None
    checkpoint_t: int
    """Releases up to here were pruned; 0: none."""
    checkpoint: bytes
    """The link that the first release continues."""
    last_t: int
    head: bytes
    """The link of the last release."""
    seal: bytes = b""
    summaries: bytes = b""
    """What authenticates the summaries of pruned releases; empty: there is none."""


@dataclass(frozen=True)
class Damage:
    """The first place at which a chain breaks; without a place, the list of streams is wrong."""

    t: int | None
    what: str

    def __str__(self) -> str:
        return self.what if self.t is None else f"t={self.t}: {self.what}"


@dataclass(frozen=True)
class ChainCheck:
    """What was found of a stream's releases."""

    stream: str
    releases: int = 0
    first_t: int | None = None
    last_t: int | None = None
    damage: Damage | None = None
    pruned_t: int = 0
    """Releases up to here were pruned; 0: none."""
    summaries: int = 0
    """How many summaries stand in their place."""

    def refuse_damage(self) -> None:
        """Raise the error for users if the chain does not hold."""
        if self.damage is not None:
            raise Mistake(Problem.CHAIN_BROKEN, stream=self.stream, what=self.damage)


class Chain:
    """Makes and checks the chains of a store's streams."""

    _NUMBERS = struct.Struct(">qqqq?")
    _ENDS = struct.Struct(">qqqq")

    def __init__(self, key: bytes, *, seals_log: bool = False) -> None:
        self._key = key
        self.seals_log = seals_log
        """Whether the admin log has a sealed end even while it is empty."""

    def __repr__(self) -> str:
        return "Chain(...)"

    def begun(self, stream: str, terms: bytes) -> ChainEnds:
        """Return the row of a stream that has released nothing yet."""
        start = self._start(stream)
        return self._sealed(stream, ChainEnds(terms, None, 0, start, 0, start))

    def succeeded(self, stream: str, ends: ChainEnds, terms: bytes) -> ChainEnds:
        """Return the stream's row when its terms are followed by these."""
        self._refuse_broken_seal(stream, ends)
        return self._sealed(stream, replace(ends, terms=ends.terms + b"\n" + terms))

    def extended(
        self, stream: str, ends: ChainEnds, rows: Sequence[ChainRow], mechanism: bytes
    ) -> tuple[list[bytes], ChainEnds]:
        """Return the links of new releases, and the stream's row after them.

        The row as it was must be sealed: what somebody has changed is not sealed again.
        """
        self._refuse_broken_seal(stream, ends)
        links = self._links(stream, ends.head, rows)
        after = replace(ends, last_t=rows[-1].t, head=links[-1], mechanism=mechanism)
        return links, self._sealed(stream, after)

    def pruned(self, stream: str, ends: ChainEnds, t: int, link: bytes) -> ChainEnds:
        """Return the stream's row when all up to `t`, the release of that link, is gone."""
        self._refuse_broken_seal(stream, ends)
        return self._sealed(stream, replace(ends, checkpoint_t=t, checkpoint=link))

    def summarised(self, stream: str, ends: ChainEnds, summaries: bytes) -> ChainEnds:
        """Return the stream's row when this authenticates its summaries."""
        self._refuse_broken_seal(stream, ends)
        return self._sealed(stream, replace(ends, summaries=summaries))

    def accepted(
        self,
        stream: str,
        ends: ChainEnds,
        page_after: Callable[[int], Sequence[ChainRow]],
        write: Callable[[list[tuple[bytes, int]]], None],
    ) -> ChainEnds:
        """Chain all that is stored, as it is; return the stream's row.

        `page_after` gives the next releases after a t, and `write` is given links and their t.
        """
        head = self._start(stream)
        first = last = 0
        while page := page_after(last):
            first = first or page[0].t
            last = page[-1].t
            links = self._links(stream, head, page)
            write([(link, row.t) for link, row in zip(links, page, strict=True)])
            head = links[-1]
        after = replace(
            ends,
            checkpoint_t=max(first - 1, 0),
            checkpoint=self._start(stream),
            last_t=max(ends.last_t, last),
            head=head,
        )
        return self._sealed(stream, after)

    def summary_link(self, stream: str, row: SummaryRow) -> bytes:
        """Authenticate one summary."""
        label = b"ldpstream summary 1\n" + stream.encode() + b"\n"
        return self._digest(label + json.dumps(row).encode())

    def summaries_link(self, stream: str, links: Sequence[bytes]) -> bytes:
        """Authenticate all summaries of a stream, in order; nothing if there is none."""
        label = b"ldpstream summaries 1\n" + stream.encode() + b"\n"
        return self._digest(label + b"".join(links)) if links else b""

    def check(
        self,
        stream: str,
        ends: ChainEnds,
        rows: Iterable[LinkedRow],
        progress: Progress = ignore,
    ) -> ChainCheck:
        """Follow a stream's chain from one end to the other."""
        link_after = self._link_after(stream)
        previous, before, number, first = ends.checkpoint, ends.checkpoint_t, 0, None
        damage: Damage | None = None
        for t, at_ms, content, asked, received, missed, link in rows:
            if damage is None:
                try:
                    expected = link_after(previous, t, at_ms, content, asked, received, missed)
                    fits = link == expected and before < t <= ends.last_t
                except (TypeError, struct.error):  # of another type than what is stored has
                    fits = False
                if not fits:
                    damage = Damage(t, "this release, or one before it, was changed or moved")
            first = t if first is None else first
            previous, before, number = link, t, number + 1
            if number % PAGE == 0:
                progress(number)
        if damage is None and previous != ends.head:
            damage = Damage(before + 1, "releases from here on are missing")
        if damage is None and not self._holds(stream, ends):
            damage = Damage(ends.last_t, BROKEN_SEAL)
        last = before if number else None
        return ChainCheck(stream, number, first, last, damage, ends.checkpoint_t)

    def seal_names(self, names: Iterable[str]) -> str:
        """Authenticate the list of a store's streams, of which one could be removed as a whole."""
        return self._digest(b"ldpstream streams 1\n" + json.dumps(sorted(names)).encode()).hex()

    def check_names(self, names: Iterable[str], seal: str | None) -> ChainCheck:
        """Compare the streams of a store with the list that was sealed."""
        if seal is not None and hmac.compare_digest(seal.encode(), self.seal_names(names).encode()):
            return ChainCheck(EVERY)
        return ChainCheck(EVERY, damage=Damage(None, "a stream was removed, added or renamed"))

    def log_link(
        self, previous: bytes, number: int, at_ms: int, who: str, action: str, details: str
    ) -> bytes:
        """Return the link of an entry of the admin log."""
        entry = json.dumps([number, at_ms, who, action, details]).encode()
        return self._digest(b"ldpstream admin log 1\n" + previous + entry)

    def seal_log(self, number: int, link: bytes) -> str:
        """Authenticate the end of the admin log, of which the last entries could be removed."""
        return self._digest(b"ldpstream admin log end 1\n%d\n" % number + link).hex()

    def holds_log(self, number: int, link: bytes, seal: str | None) -> bool:
        """Return whether this is the end of the admin log that was sealed."""
        expected = self.seal_log(number, link).encode()
        return hmac.compare_digest((seal or "").encode(), expected)

    def _link_after(self, stream: str) -> Callable[..., bytes]:
        """Return what computes a link from the one before it and the columns of a release."""
        key, pack, digest = self._key, self._NUMBERS.pack, hmac.digest
        label = b"ldpstream release 1\n" + stream.encode() + b"\n"

        def link(
            previous: bytes,
            t: int,
            at_ms: int,
            content: bytes,
            asked: int,
            received: int,
            missed: bool,
        ) -> bytes:
            numbers = pack(t, at_ms, asked, received, missed)
            return digest(key, label + previous + numbers + content, "sha256")

        return link

    def _links(self, stream: str, previous: bytes, rows: Iterable[ChainRow]) -> list[bytes]:
        link_after, links = self._link_after(stream), []
        for row in rows:
            previous = link_after(previous, *row)
            links.append(previous)
        return links

    def _refuse_broken_seal(self, stream: str, ends: ChainEnds) -> None:
        if not self._holds(stream, ends):
            what = Damage(ends.last_t, BROKEN_SEAL)
            raise Mistake(Problem.CHAIN_BROKEN, stream=stream, what=what)

    def _start(self, stream: str) -> bytes:
        return self._digest(b"ldpstream chain 1\n" + stream.encode())

    def _holds(self, stream: str, ends: ChainEnds) -> bool:
        return hmac.compare_digest(ends.seal, self._seal(stream, ends))

    def _sealed(self, stream: str, ends: ChainEnds) -> ChainEnds:
        return replace(ends, seal=self._seal(stream, ends))

    def _seal(self, stream: str, ends: ChainEnds) -> bytes:
        known, state = ends.mechanism is not None, ends.mechanism or b""
        sizes = self._ENDS.pack(ends.checkpoint_t, ends.last_t, len(ends.checkpoint), known)
        texts = sha256(ends.terms).digest() + sha256(state).digest()
        label = b"ldpstream ends 1\n" + stream.encode() + b"\n"
        # Without summaries it is the seal of before, so that neighbouring releases agree on it.
        return self._digest(label + sizes + texts + ends.checkpoint + ends.head + ends.summaries)

    def _digest(self, content: bytes) -> bytes:
        return hmac.digest(self._key, content, "sha256")
