"""Whether terms may follow others: a successor never loosens what a person was promised.

The rules, with their proof, are in docs/guarantee.md. A device asks `objection` first, and then the
policy that its application has set.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ldpstream.protocol.terms import Terms


def objection(old: Terms, new: Terms) -> str | None:
    """Return why a device under `old`, at its level, cannot go over to `new`; None if it can.

    `old` is what the device agreed to, at its level; `new` is taken at the level of that name.
    """
    succeeds = new.succeeds
    if succeeds is None or succeeds.pin != old.pin:
        return "they do not name the terms they follow"
    if succeeds.version != old.version + 1:
        return f"they are version {succeeds.version}, after version {old.version}"
    for name in ("stream", "interval_ms", "start_ms", "query", "selection"):
        if getattr(new, name) != getattr(old, name):
            return f"{name} would change"
    if not new.has_level(old.level):
        return f"they do not have the level {old.level}"
    at_level = new.at_level(old.level)
    if at_level.epsilon_nano > old.epsilon_nano:
        return "epsilon would grow"
    if at_level.window < old.window:
        return "the window would become shorter"
    if old.domain is None:
        return None if new.values == old.values else "the range of values would change"
    if succeeds.labels is None or len(succeeds.labels) != len(old.domain):
        return "not every label of before is mapped to one of now"
    return None


class Acceptance(StrEnum):
    """How far an application lets its device go over to new terms by itself."""

    NEVER = "never"
    SAME_LABELS = "same-labels"
    """If nothing changes that a value can be."""
    NOT_LOOSER = "not-looser"
    """If the promise is at least as strict, whatever the labels are."""


@dataclass(frozen=True)
class Policy:
    """What an application agrees to in advance, within floors.

    Without floors a collector could make a fleet useless step by step: each successor with a
    smaller epsilon or a longer window would be accepted, and none could be taken back.
    """

    accept: Acceptance = Acceptance.NEVER
    pins: frozenset[str] = frozenset()
    """Terms that the application has agreed to by their pin, whatever `accept` says."""
    least_epsilon_nano: int = 0
    longest_window: int = 1 << 31

    def agrees(self, old: Terms, new: Terms) -> bool:
        """Return whether the application agrees to terms to which there is no `objection`."""
        if new.pin in self.pins:
            return True
        at_level = new.at_level(old.level)
        if at_level.epsilon_nano < self.least_epsilon_nano:
            return False
        if at_level.window > self.longest_window:
            return False
        if self.accept is Acceptance.SAME_LABELS:
            return new.values == old.values and new.other == old.other
        return self.accept is Acceptance.NOT_LOOSER
