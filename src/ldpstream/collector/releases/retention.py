"""How long releases are kept: then as summaries of hours, later of days, then not at all.

Hours and days are those of UTC, by the moment at which a timestamp begins. No I/O here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import Any

from ldpstream.collector.store.contract import ReleaseSummary, StoredRelease
from ldpstream.durations import DAY_MS, HOUR_MS
from ldpstream.protocol.terms import Terms

_MEANS = ("values", "low", "high")
_TEXTS = (*_MEANS, "least", "most", "listed")
"""What a summary of texts has of each."""
_SUMS = ("releases", "missed", "asked", "received")


@dataclass(frozen=True)
class Retention:
    """The ages up to which releases and their summaries are kept, or None for ever."""

    releases_ms: int | None = None
    hourly_ms: int | None = None
    daily_ms: int | None = None

    def hour_to_prune(self, terms: Terms, oldest_t: int, last_t: int, now_ms: int) -> int | None:
        """Return the last t of the hour of `oldest_t` if all of it is too old; else None.

        `last_t` is the last timestamp that may go.
        """
        if self.releases_ms is None:
            return None
        end_ms = _floor(terms.start_of(oldest_t), HOUR_MS) + HOUR_MS
        until_t = terms.timestamp_at(end_ms - 1)
        return until_t if end_ms <= now_ms - self.releases_ms and until_t <= last_t else None

    def days_to_merge(
        self, known: Iterable[ReleaseSummary], now_ms: int
    ) -> list[list[ReleaseSummary]]:
        """Return the summaries of hours that are to be one of their day, day by day."""
        if self.hourly_ms is None:
            return []
        before_ms = _floor(now_ms - self.hourly_ms, DAY_MS)
        old = [one for one in known if one.period_ms == HOUR_MS and one.start_ms < before_ms]
        return [list(day) for _, day in groupby(old, _day_and_version)]

    def gone(self, known: Iterable[ReleaseSummary], now_ms: int) -> list[int]:
        """Return the first t of the summaries of days that are too old."""
        if self.daily_ms is None:
            return []
        end_ms = now_ms - self.daily_ms
        return [
            one.first_t
            for one in known
            if one.period_ms == DAY_MS and one.start_ms + DAY_MS <= end_ms
        ]


KEEP_ALL = Retention()


def summary_of(release: StoredRelease, terms: Terms) -> ReleaseSummary:
    """Return the summary of an hour with one release."""
    values = release.content["values"]
    content = {
        "releases": 1,
        "missed": int(release.missed),
        "asked": release.asked,
        "received": release.received,
        "terms_version": release.terms_version,
        "values": values,
        "least": values,
        "most": values,
        "low": release.content.get("low", values),
        "high": release.content.get("high", values),
    }
    if "labels" in release.content:
        content |= {"labels": release.content["labels"], "listed": [1] * len(values)}
    start_ms = _floor(terms.start_of(release.t), HOUR_MS)
    return ReleaseSummary(release.t, release.t, start_ms, HOUR_MS, content)


def combined(earlier: ReleaseSummary, later: ReleaseSummary) -> ReleaseSummary:
    """Return one summary of what two have seen under the same terms, of the earlier's period."""
    a, b = earlier.content, later.content
    content: dict[str, Any] = {name: a[name] + b[name] for name in _SUMS}
    content["terms_version"] = a["terms_version"]
    content |= _of_texts(a, b) if "labels" in a else _of_labels(a, b)
    return ReleaseSummary(
        earlier.first_t, later.last_t, earlier.start_ms, earlier.period_ms, content
    )


def _of_labels(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Return what two summaries say together of labels that both have."""
    n, m = a["releases"], b["releases"]
    means = {
        name: [(n * x + m * y) / (n + m) for x, y in zip(a[name], b[name], strict=True)]
        for name in _MEANS
    }
    least, most = [*map(min, a["least"], b["least"])], [*map(max, a["most"], b["most"])]
    return {**means, "least": least, "most": most}


def _of_texts(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Return what two summaries of texts say together.

    Each text has the means of the releases that have listed it, and how many did.
    """
    found = _by_text(a)
    for text, new in _by_text(b).items():
        old = found.get(text)
        if old is None:
            found[text] = new
            continue
        n, m = old["listed"], new["listed"]
        found[text] = {name: (n * old[name] + m * new[name]) / (n + m) for name in _MEANS} | {
            "least": min(old["least"], new["least"]),
            "most": max(old["most"], new["most"]),
            "listed": n + m,
        }
    return {"labels": [*found], **{name: [one[name] for one in found.values()] for name in _TEXTS}}


def _by_text(summary: dict[str, Any]) -> dict[str, dict[str, float]]:
    rows = zip(*(summary[name] for name in _TEXTS), strict=True)
    each = (dict(zip(_TEXTS, row, strict=True)) for row in rows)
    return dict(zip(summary["labels"], each, strict=True))


def day_of(hours: list[ReleaseSummary]) -> ReleaseSummary:
    """Return the summary of a day from those of its hours."""
    whole = reduce(combined, hours)
    start_ms = _floor(whole.start_ms, DAY_MS)
    return ReleaseSummary(whole.first_t, whole.last_t, start_ms, DAY_MS, whole.content)


def _day_and_version(one: ReleaseSummary) -> tuple[int, int]:
    return _floor(one.start_ms, DAY_MS), one.content["terms_version"]


def _floor(ms: int, period_ms: int) -> int:
    return ms - ms % period_ms
