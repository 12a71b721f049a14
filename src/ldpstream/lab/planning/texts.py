"""A plan for a stream of texts: what will be found, at which cost, and its `stream.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ldpstream.durations import spelled
from ldpstream.lab.planning.stream_file import beginning
from ldpstream.lab.vocabulary import MORE_BYTES
from ldpstream.mechanisms.following import KEPT_WINDOWS
from ldpstream.oracles import Oracle
from ldpstream.oracles.tagged.device import Tagged
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.vocabulary.device import HASHES
from ldpstream.vocabulary.planning import PREFIXES, discoverable_share, listed_share, planned_bits

CHOICES = ((), (2,), (2, 4), PREFIXES, (2, 4, 6, 8), (2, 4, 6, 8, 10, 12, 14))
"""Lengths of prefixes that are compared."""


@dataclass(frozen=True)
class TextPlan:
    """A forecast for a stream of texts that nobody has listed.

    >>> plan = TextPlan(1_000_000, Epsilon.of(2), 20, 60_000)
    >>> plan.bits, plan.report_bytes, plan.row(PREFIXES)["longest_found"]
    (20, 5, 8)
    """

    users: int
    epsilon: Epsilon
    window: int
    interval_ms: int

    @property
    def bits(self) -> int:
        return planned_bits(self.users, self.epsilon)

    @property
    def report_bytes(self) -> int:
        inner = Oracle.HADAMARD.device((1 << self.bits) - 1, self.epsilon)
        return Tagged(inner, HASHES).report_bytes

    def row(self, prefixes: tuple[int, ...]) -> dict[str, Any]:
        """Return what to expect with these lengths of prefixes, after three windows.

        A share is None if not even a text that all devices hold would stand out.
        """
        found = discoverable_share(self.users, self.epsilon, len(prefixes), KEPT_WINDOWS)
        listed = listed_share(self.users, self.epsilon, len(prefixes), KEPT_WINDOWS)
        return {
            "prefixes": ", ".join(map(str, prefixes)) or "none",
            "longest_found": prefixes[-1] + MORE_BYTES if prefixes else 0,
            "found_from": found if prefixes and found <= 1 else None,
            "listed_from": listed if listed <= 1 else None,
        }

    def rows(self) -> list[dict[str, Any]]:
        return [self.row(prefixes) for prefixes in CHOICES]

    def sentences(self) -> list[str]:
        """Return what the usual lengths come to, in words."""
        usual, windows = self.row(PREFIXES), spelled(KEPT_WINDOWS * self.window * self.interval_ms)
        return [
            f"Texts are hashed into 2^{self.bits} - 1 buckets; a report has {self.report_bytes}"
            f" bytes, and a device sends one in {spelled(self.window * self.interval_ms)}.",
            f"A text of at most {usual['longest_found']} bytes that at least"
            f" {usual['found_from']:.2%} of the devices hold is found within three windows"
            f" ({windows}) though nobody has listed it."
            if usual["found_from"]
            else f"No text is found that nobody has listed, within three windows ({windows}): that"
            " takes more devices, or a larger epsilon.",
            f"A candidate, or a text that was found, is listed from about"
            f" {usual['listed_from']:.2%} on."
            if usual["listed_from"]
            else "No candidate is listed, whoever holds it.",
        ]

    def stream_file(self) -> str:
        lines = [
            *beginning([f"# {one}" for one in self.sentences()], pinned_until="the interval"),
            'vocabulary = "open"',
            f"bits = {self.bits}",
            f"prefixes = {list(PREFIXES)}",
            f"epsilon = {self.epsilon}",
            f"window = {self.window}",
            f'interval = "{spelled(self.interval_ms)}"',
            "",
            f"population = {self.users}",
            "# Texts that you know of are listed from a smaller share on, whatever their length.",
            "candidates = []",
        ]
        return "\n".join(lines) + "\n"

    def to_json(self) -> dict[str, Any]:
        return {
            "recommendation": "lpf",
            "oracle": Oracle.HADAMARD.value,
            "because": self.sentences(),
            "users": self.users,
            "epsilon": float(self.epsilon),
            "window": self.window,
            "bits": self.bits,
            "prefixes": list(PREFIXES),
            "report_bytes": self.report_bytes,
            "outcomes": self.rows(),
            "stream_toml": self.stream_file(),
        }
