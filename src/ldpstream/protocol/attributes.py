"""Public attributes of devices, such as a firmware or a country, by which figures are broken down.

They are declared in the terms with their values, are no part of the private value, and nothing
protects them. A report's tag says which combination of values its device has; what is not declared,
or what an application has not said, is `OTHER`.

>>> attributes = Attributes((Attribute("country", ("de", "fr")), Attribute("model", ("a",))))
>>> attributes.combinations, attributes.combination({"country": "fr"})
(6, 3)
>>> attributes.values_of(3), attributes.members("country", "fr")
({'country': 'fr', 'model': 'other'}, (2, 3))
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

OTHER = "other"
"""The last value of every attribute, for devices whose own is not declared."""
MOST_GROUPS = 32
"""Values of all attributes together, `OTHER` of each among them."""
MOST_COMBINATIONS = 256
"""A tag is one byte."""
LEAST_EXPECTED = 100
"""Devices that should be expected of each combination: attributes that fewer share may tell who a
device is to whoever knows as much of it."""
ATTRIBUTE_NAME = "1 to 16 of a-z, 0-9 and _, the first of them a letter"
ATTRIBUTE_VALUE = f'1 to 64 printable characters of ASCII, and not "{OTHER}"'

_NAME = re.compile(r"[a-z][a-z0-9_]{0,15}")
_VALUE = re.compile(r"[ -~]{1,64}")


@dataclass(frozen=True)
class Attribute:
    """One public attribute, and the values of it that are told apart."""

    name: str
    declared: tuple[str, ...]

    @property
    def values(self) -> tuple[str, ...]:
        """All values, the one for all others last."""
        return (*self.declared, OTHER)

    def place(self, value: object) -> int:
        """Return the index of a value, whatever it is; what is not declared counts as `OTHER`."""
        if isinstance(value, str) and value in self.declared:  # an array is compared to none
            return self.declared.index(value)
        return len(self.declared)

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "values": list(self.declared)}


@dataclass(frozen=True)
class Attributes:
    """All attributes of a stream, in the order of its terms."""

    each: tuple[Attribute, ...]

    @classmethod
    def read(cls, sent: object) -> Attributes | None:
        """Parse the form that `to_json` makes; return None if it is malformed or too large."""
        if not (isinstance(sent, list) and sent and all(map(_is_attribute, sent))):
            return None
        found = cls(tuple(Attribute(one["name"], tuple(one["values"])) for one in sent))
        return found if found.fault is None else None

    def to_json(self) -> list[dict[str, Any]]:
        return [one.to_json() for one in self.each]

    @property
    def fault(self) -> str | None:
        """What is wrong with them, if anything."""
        if len({one.name for one in self.each}) < len(self.each):
            return "two attributes have the same name"
        for one in self.each:
            if _NAME.fullmatch(one.name) is None:
                return f"the name {one.name!r} is not {ATTRIBUTE_NAME}"
            if not one.declared or len(set(one.declared)) < len(one.declared):
                return f"{one.name} needs values, each once"
            if not all(is_value(value) for value in one.declared):
                return f"a value of {one.name} is not {ATTRIBUTE_VALUE}"
        if len(self.groups) > MOST_GROUPS:
            return f"{len(self.groups)} values with the others, of at most {MOST_GROUPS}"
        if self.combinations > MOST_COMBINATIONS:
            return f"{self.combinations} combinations, of at most {MOST_COMBINATIONS}"
        return None

    @property
    def combinations(self) -> int:
        """How many combinations of values there are."""
        return prod(len(one.values) for one in self.each)

    def named(self, name: str) -> Attribute | None:
        """Return the attribute of this name, if there is one."""
        return next((one for one in self.each if one.name == name), None)

    @cached_property
    def groups(self) -> tuple[tuple[str, str], ...]:
        """All groups of devices, each the name of an attribute and a value of it."""
        return tuple((one.name, value) for one in self.each for value in one.values)

    def warning(self, population: int) -> str | None:
        """Return why they may single out devices of a fleet of this size; None if they do not.

        >>> Attributes((Attribute("model", ("a", "b", "c")),)).warning(200)
        '4 combinations of attributes have about 50 devices each, if 200 are divided evenly: fewer \
than 100 may single out a device; tell fewer attributes or values'
        """
        each = population / self.combinations
        if each >= LEAST_EXPECTED:
            return None
        return (
            f"{self.combinations} combinations of attributes have about {each:.3g} devices each, if"
            f" {population:,} are divided evenly: fewer than {LEAST_EXPECTED} may single out a"
            " device; tell fewer attributes or values"
        )

    def combination(self, described: Mapping[str, object]) -> int:
        """Return the index of the combination of a device of which this is said."""
        index = 0
        for one in self.each:
            index = index * len(one.values) + one.place(described.get(one.name))
        return index

    def values_of(self, combination: int) -> dict[str, str]:
        """Return the values of a combination, by the names of the attributes."""
        return dict(zip((one.name for one in self.each), self._table[combination], strict=True))

    def members(self, name: str, value: str) -> tuple[int, ...]:
        """Return the combinations that make up a group."""
        place = [one.name for one in self.each].index(name)
        return tuple(at for at, values in enumerate(self._table) if values[place] == value)

    def group_of(self, name: str, value: str) -> tuple[str, str] | None:
        """Return the group that the devices of a group of earlier attributes are in, if any is.

        >>> Attributes((Attribute("country", ("de",)),)).group_of("country", "fr")
        ('country', 'other')
        """
        own = self.named(name)
        return None if own is None else (name, own.values[own.place(value)])

    def matching(self, name: str, value: str, earlier: Attributes) -> tuple[int, ...]:
        """Return the combinations of earlier attributes that make up a group of these.

        >>> now = Attributes((Attribute("country", ("de",)),))
        >>> before = Attributes((Attribute("country", ("de", "fr")),))
        >>> now.matching("country", "other", before)
        (1, 2)
        """
        return tuple(
            at
            for at in range(earlier.combinations)
            if self.group_of(name, earlier.values_of(at).get(name, OTHER)) == (name, value)
        )

    def objection(self, earlier: Attributes | None) -> str | None:
        """Return why a device that tells `earlier` ones cannot go over to these; None if it can.

        It may tell fewer attributes or values than before, and none that is new.
        """
        for one in self.each:
            known = None if earlier is None else earlier.named(one.name)
            if known is None:
                return f"the attribute {one.name} is new"
            for value in one.declared:
                if value not in known.declared:
                    return f"the value {value!r} of the attribute {one.name} is new"
        return None

    @cached_property
    def _table(self) -> tuple[tuple[str, ...], ...]:
        return tuple(product(*(one.values for one in self.each)))


def is_value(value: object) -> bool:
    """Return whether an attribute may declare this value."""
    return isinstance(value, str) and _VALUE.fullmatch(value) is not None and value != OTHER


def _is_attribute(sent: object) -> bool:
    return (
        isinstance(sent, dict)
        and sent.keys() == {"name", "values"}
        and isinstance(sent["name"], str)
        and isinstance(sent["values"], list)
        and all(isinstance(value, str) for value in sent["values"])
    )
