"""The instruments that count and time things as they happen.

Every series has the label `stream`, so that whoever may not read a stream is shown none of it. No
other label comes from the network: they are purposes, states and operations of the program's own.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

LATENCIES = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)


class Meters:
    """One registry of its own for each collector in the process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.releases = Counter(
            "ldpstream_releases",
            "Timestamps released: fresh, carried over, or missed while the collector was away.",
            ("stream", "kind"),
            registry=self.registry,
        )
        self.rounds = Counter(
            "ldpstream_rounds",
            "Rounds that entered a state, by purpose.",
            ("stream", "purpose", "state"),
            registry=self.registry,
        )
        self.counted = Counter(
            "ldpstream_counted_reports",
            "Reports that were counted, by the version of their terms and their level of privacy.",
            ("stream", "version", "level"),
            registry=self.registry,
        )
        self.asked = Counter(
            "ldpstream_asked_users",
            "Users asked for, over all timestamps released.",
            ("stream",),
            registry=self.registry,
        )
        self.ingest = Histogram(
            "ldpstream_ingest_seconds",
            "Time from queueing a request's reports until they are on disk.",
            ("stream",),
            buckets=LATENCIES,
            registry=self.registry,
        )
        self.store = Histogram(
            "ldpstream_store_commit_seconds",
            "Time from giving a change to the store until it is on disk.",
            ("stream", "operation"),
            buckets=LATENCIES,
            registry=self.registry,
        )
        self.webhook = Counter(
            "ldpstream_webhook_messages",
            "Attempts to send alerts to the webhook: delivered, refused or unreachable.",
            ("stream", "outcome"),
            registry=self.registry,
        )
        self.store_errors = Counter(
            "ldpstream_store_errors",
            "Changes that the store could not make.",
            ("stream", "operation"),
            registry=self.registry,
        )

    def store_changed(self, stream: str, change: str, seconds: float | None) -> None:
        """Count and time a change of the store, as its observer."""
        if seconds is None:
            self.store_errors.labels(stream, change).inc()
        else:
            self.store.labels(stream, change).observe(seconds)
