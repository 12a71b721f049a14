"""The content of releases as it is stored: JSON on a line, parsed only if it is looked into."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

_DECODER, _ENCODER = json.JSONDecoder(), json.JSONEncoder(separators=(",", ":"))


def stored_text(value: dict[str, Any]) -> str:
    """Return JSON as both stores keep it, byte by byte.

    Lists of objects, such as the states of all groups, are encoded object by object: one call for
    all, which may be 100 MB, would keep other threads waiting until it is done.

    >>> stored_text({"t": 1, "groups": [{"a": [0.5]}, {}], "fresh": True})
    '{"t":1,"groups":[{"a":[0.5]},{}],"fresh":true}'
    """
    if not any(map(_is_objects, value.values())):
        return _ENCODER.encode(value)
    parts = (f"{_ENCODER.encode(key)}:{_part_text(part)}" for key, part in value.items())
    return f"{{{','.join(parts)}}}"


def _part_text(part: object) -> str:
    if not _is_objects(part):
        return _ENCODER.encode(part)
    assert isinstance(part, list)
    return f"[{','.join(map(_ENCODER.encode, part))}]"


def _is_objects(part: object) -> bool:
    return isinstance(part, list) and bool(part) and isinstance(part[0], dict)


class StoredContent(Mapping[str, Any]):
    """A mapping in the text that is stored. A page of releases is made of such texts, unparsed.

    >>> content = StoredContent('{"t":1,"values":[0.5]}')
    >>> content["values"], content.beside({"revised": None}).text
    ([0.5], '{"t":1,"values":[0.5],"revised":null}')
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"StoredContent({self.text!r})"

    @cached_property
    def _parsed(self) -> dict[str, Any]:
        return dict(json.loads(self.text))

    def __getitem__(self, name: str) -> Any:
        """Decode the one entry, if no other object is written before it.

        In JSON a quotation mark within a string is escaped: what is found is a name.
        """
        key, nested = f'"{name}":', self.text.find("{", 1)
        place = self.text.find(key, 1, nested if nested > 0 else len(self.text))
        if place > 0:
            return _DECODER.raw_decode(self.text, place + len(key))[0]
        if name not in self.text:
            raise KeyError(name)
        return self._parsed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parsed)

    def __len__(self) -> int:
        return len(self._parsed)

    def __or__(self, more: Mapping[str, Any]) -> dict[str, Any]:
        return self._parsed | dict(more)

    def beside(self, more: dict[str, Any]) -> StoredContent:
        """Return it with entries under names that it has not."""
        return StoredContent(f"{self.text[:-1]},{stored_text(more)[1:]}")
