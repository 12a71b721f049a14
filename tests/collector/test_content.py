"""What is stored is JSON, byte by byte, and is not made in one call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ldpstream.collector.store import content


def test_many_objects_are_encoded_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one call lasts no other thread runs: the state of 32 groups may be 100 MB."""
    value = {"t": 1, "groups": [{"state": [0.5] * 100, "é": None}] * 32, "rest": {"a": [{}]}}
    longest, encoder = 0, json.JSONEncoder(separators=(",", ":"))

    class Watched(json.JSONEncoder):
        def encode(self, o: Any) -> str:
            nonlocal longest
            text = encoder.encode(o)
            longest = max(longest, len(text))
            return text

    monkeypatch.setattr(content, "_ENCODER", Watched())
    expected = encoder.encode(value)
    assert content.stored_text(value) == expected
    assert longest < len(expected) / 20
