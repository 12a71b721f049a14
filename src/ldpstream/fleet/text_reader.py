"""A reader of a stream of texts, which judges what is listed and how well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpstream.arrays import Counts, Floats
from ldpstream.device.exchange import AsyncTransport
from ldpstream.fleet.reader import ReleaseReader
from ldpstream.fleet.users import Users
from ldpstream.lab.metrics import Metrics
from ldpstream.lab.vocabulary import Found, Goal, TextJudge
from ldpstream.mechanisms.queries import Query
from ldpstream.protocol.messages import TokenProof
from ldpstream.protocol.terms import Terms
from ldpstream.vocabulary import Vocabulary
from ldpstream.vocabulary.device import encoded


@dataclass(kw_only=True)
class TextReader(ReleaseReader):
    """Reads releases that have labels of their own, and remembers which texts were found."""

    terms: Terms
    _judge: TextJudge | None = None
    _begin: int = 0
    """The timestamp before the first that the fleet took part in."""

    def truth(self, release: dict[str, Any], counts: Counts) -> Floats | None:
        """Return the true shares of the texts that are listed."""
        assert isinstance(self.terms.values, Vocabulary)
        if self._judge is None:
            users = int(counts.sum())
            labels = map(encoded, self.users.labels)
            held = dict(zip(labels, (counts / users).tolist(), strict=True))
            goal = Goal.of(self.terms.values, self.terms.epsilon, users)
            self._judge, self._begin = TextJudge(held, goal), release["t"] - 1
        texts = [encoded(text) for text in release["labels"]]
        rest = release["rest"]["low"], release["rest"]["high"]
        low, high = (np.array(release[end], np.float64) for end in ("low", "high"))
        return self._judge.see(release["t"], texts, (low, high), rest)

    def metrics(self, devices: int) -> Metrics | None:
        """Return None: releases have no figures in common that could be compared over time."""
        return None

    @property
    def found(self) -> Found | None:
        """Which texts were found; those that devices held when the fleet began."""
        if self._judge is None:
            return None
        return self._judge.found(self.terms.window, self._begin)


def reader_of(
    terms: Terms,
    transport: AsyncTransport,
    url: str,
    users: Users,
    query: Query,
    proof: TokenProof | None,
) -> ReleaseReader:
    """Return what reads and judges the releases of a stream."""
    if isinstance(terms.values, Vocabulary):
        return TextReader(transport, url, terms.stream, users, query, proof, terms=terms)
    return ReleaseReader(transport, url, terms.stream, users, query, proof, terms.attributes)
