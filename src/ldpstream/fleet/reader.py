"""A reader that follows a collector's releases and compares them with the truth."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ldpstream.arrays import Counts, Floats
from ldpstream.collector.store.groups import GROUPS, written
from ldpstream.device.answers import refusal_in
from ldpstream.device.exchange import AsyncTransport, Request
from ldpstream.fleet.users import Users
from ldpstream.lab.metrics import Metrics, measure_answers
from ldpstream.lab.vocabulary import Found
from ldpstream.mechanisms.queries import HISTOGRAM, DistributionQuery, Query
from ldpstream.protocol.attributes import Attributes
from ldpstream.protocol.messages import RELEASES, TokenProof, path_of

PAGE = 1000


@dataclass(frozen=True)
class JudgedRelease:
    """A release, and how far it is from the truth."""

    t: int
    values: Floats
    low: Floats
    high: Floats
    truth: Floats
    fresh: bool
    received: int
    median: int | None = None
    """Where the median is among the figures, of a distribution."""
    listed: int | None = None
    """How many texts are listed, in a stream of texts."""

    @property
    def mae(self) -> float:
        return float(np.mean(np.abs(self.values - self.truth))) if len(self.values) else 0.0

    @property
    def in_words(self) -> str:
        """How far it is off; figures of a distribution have no unit in common."""
        if self.median is not None:
            return f"p50 off by {abs(self.values[self.median] - self.truth[self.median]):.4g}"
        texts = "" if self.listed is None else f"texts listed {self.listed}"
        error = f"mean absolute error {self.mae:.4f}" if len(self.values) else ""
        return "  ".join(filter(None, (texts, error)))


@dataclass
class ReleaseReader:
    """Reads the releases of the timestamps that the fleet took part in."""

    transport: AsyncTransport
    url: str
    stream: str
    users: Users
    query: Query = HISTOGRAM
    proof: TokenProof | None = None
    """Needed where the stream is private."""
    attributes: Attributes | None = None
    """Those of the stream, if it has any."""
    judged: list[JudgedRelease] = field(default_factory=list)
    groups: dict[str, list[JudgedRelease]] = field(default_factory=dict)
    """What was released of groups of devices, by their names."""
    seen: int = 0
    """How many releases were read of timestamps that the fleet took part in."""
    _next: int = 0
    _version: int | None = None
    """The version of the stream's terms at the first release; later labels are not compared."""

    async def read(self) -> list[JudgedRelease]:
        """Return the releases that came since the last call; none of before the fleet began."""
        first_t = self.users.first_t
        if first_t is None:
            return []
        self._next = max(self._next, first_t)
        path = path_of(RELEASES, stream=self.stream)
        path += f"?since={self._next}&limit={PAGE}&format=json"
        headers = {} if self.proof is None else self.proof.headers
        response = await self.transport.send(self.url, Request("GET", path, headers))
        if response.status != 200:
            raise refusal_in(response, "to show releases")
        new = []
        for release in _releases(json.loads(response.body)):
            self._next = release["t"] + 1
            counts = self.users.counts(release["t"])
            if counts is not None:
                self.seen += 1
                truth = self.truth(release, counts)
                if truth is None:
                    continue
                new.append(self._judged(release, release, truth))
                for group in release.get(GROUPS, ()):
                    name = written((group["attribute"], group["value"]))
                    own = self.query.truth(self._counts_of(group, release["t"]))
                    self.groups.setdefault(name, []).append(self._judged(release, group, own))
        self.judged += new
        return new

    def truth(self, release: dict[str, Any], counts: Counts) -> Floats | None:
        """Return the true answer; None if a release cannot be compared with the first one."""
        version = release.get("terms_version", 1)
        self._version = self._version or version
        truth = self.query.truth(counts)
        same = version == self._version and len(release["values"]) == len(truth)
        return truth if same else None

    @property
    def found(self) -> Found | None:
        """Which texts were found, in a stream of texts."""
        return None

    def metrics(self, devices: int) -> Metrics | None:
        """Return the metrics of `ldpstream simulate` for what was released; None if nothing was."""
        return self._metrics(self.judged, devices) if self.judged else None

    def metrics_of_groups(self, devices: int) -> dict[str, Metrics]:
        """Return the same for each group that was released, by its name."""
        return {name: self._metrics(judged, devices) for name, judged in self.groups.items()}

    def _metrics(self, judged: list[JudgedRelease], devices: int) -> Metrics:
        truth, values, low, high = (
            np.array([getattr(one, name) for one in judged])
            for name in ("truth", "values", "low", "high")
        )
        return measure_answers(
            self.query,
            truth,
            values,
            (low, high),
            users=devices,
            reports=sum(one.received for one in judged),
            publications=sum(one.fresh for one in judged),
        )

    def _judged(
        self, release: dict[str, Any], figures: dict[str, Any], truth: Floats
    ) -> JudgedRelease:
        values, low, high = (
            np.array(figures[one], np.float64) for one in ("values", "low", "high")
        )
        query = self.query
        return JudgedRelease(
            release["t"],
            values,
            low,
            high,
            truth,
            release["fresh"],
            release["received"],
            query.place("p50") if isinstance(query, DistributionQuery) else None,
            len(values) if "rest" in release else None,
        )

    def _counts_of(self, group: dict[str, Any], t: int) -> Counts:
        """Return what the users of a released group hold, of all values that are merged in it."""
        counts, values = self.users.counts_by_part(t), group.get("merged", [group["value"]])
        assert counts is not None
        assert self.attributes is not None
        attribute = self.attributes.named(group["attribute"])
        assert attribute is not None
        said = [self.users.described(row).get(attribute.name) for row in range(len(counts))]
        chosen = [attribute.values[attribute.place(one)] in values for one in said]
        return np.asarray(counts[chosen].sum(axis=0))


def _releases(answer: Any) -> list[dict[str, Any]]:
    releases: list[dict[str, Any]] = answer["releases"] if isinstance(answer, dict) else answer
    return releases
