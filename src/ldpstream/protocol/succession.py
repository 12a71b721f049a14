"""Whether terms may follow others: a successor never loosens what a person was promised.

The rules, with their proof, are in docs/guarantee.md. A device asks `objection` first, and then the
policy that its application has set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from ldpstream.errors import Mistake, Problem
from ldpstream.privacy.epsilon import LARGEST_NANO
from ldpstream.protocol.names import shown, whole
from ldpstream.protocol.strata import is_pin
from ldpstream.protocol.terms import LONGEST_WINDOW, Terms

LONGER = 4
"""How many times longer a window may become, by default, than the one that was agreed to: a promise
binds for its span even after its stream was left, so a window of years would silence a device."""


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
    told = None if new.attributes is None else new.attributes.objection(old.attributes)
    if told is not None:
        return told
    if old.domain is None:
        return None if new.values == old.values else "the range of values would change"
    if succeeds.labels is None or len(succeeds.labels) != len(old.domain):
        return "not every label of before is mapped to one of now"
    return None


class Acceptance(StrEnum):
    """How far an application lets its device go over to new terms by itself.

    >>> Acceptance("same-labels").name
    'SAME_LABELS'
    """

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

    >>> Policy("sometimes")
    Traceback (most recent call last):
    ldpstream.errors.Mistake: accept is 'sometimes'; give one of never, same-labels, not-looser
    """

    accept: Acceptance = Acceptance.NEVER
    pins: frozenset[str] = frozenset()
    """Terms that the application has agreed to by their pin, whatever `accept` says."""
    least_epsilon_nano: int = 0
    longest_window: int | None = None
    """In timestamps; None stands for four times the window under which the device enrols."""

    def __post_init__(self) -> None:
        accept: object = self.accept
        known = isinstance(accept, str) and accept in set(Acceptance)
        _refuse_unless(known, "accept", accept, f"one of {', '.join(Acceptance)}")
        pins: object = self.pins
        sound = isinstance(pins, (frozenset, set, list, tuple)) and all(map(is_pin, pins))
        _refuse_unless(sound, "pins", pins, "pins of 64 hex digits")
        least, longest = self.least_epsilon_nano, self.longest_window
        sound = whole(least, 0, LARGEST_NANO)
        _refuse_unless(sound, "least_epsilon_nano", least, "a whole number of nano-epsilon")
        sound = longest is None or whole(longest, 1, LONGEST_WINDOW)
        _refuse_unless(sound, "longest_window", longest, "a number of timestamps")
        object.__setattr__(self, "accept", Acceptance(self.accept))
        object.__setattr__(self, "pins", frozenset(self.pins))

    def within(self, terms: Terms) -> Policy:
        """Return the same policy with floors for a device that enrols under these terms.

        They are absolute: successors that each are a little stricter get no further than one.
        """
        if self.longest_window is not None:
            return self
        return replace(self, longest_window=min(LONGER * terms.window, LONGEST_WINDOW))

    def agrees(self, old: Terms, new: Terms) -> bool:
        """Return whether the application agrees to terms to which there is no `objection`."""
        if new.pin in self.pins:
            return True
        at_level = new.at_level(old.level)
        if at_level.epsilon_nano < self.least_epsilon_nano:
            return False
        if at_level.window > (self.within(old).longest_window or 0):
            return False
        if self.accept is Acceptance.SAME_LABELS:
            return new.values == old.values and new.other == old.other
        return self.accept is Acceptance.NOT_LOOSER


def _refuse_unless(holds: bool, option: str, given: object, expected: str) -> None:
    if not holds:
        raise Mistake(Problem.OPTION, option=option, given=shown(given), expected=expected)
