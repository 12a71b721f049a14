"""Revised figures beside releases, and changes, by HTTP."""

from __future__ import annotations

import csv
import io

from tests.collector.api import STREAM, Api
from tests.collector.test_api_releases import released


def test_a_release_stays_and_a_revised_figure_stands_beside_it(api: Api) -> None:
    released(api, 12)
    plain = api.client.get(f"{STREAM}/releases").json()["releases"]
    revised = api.client.get(f"{STREAM}/releases?revised=true").json()["releases"]
    assert len(plain) == len(revised) == 12
    for one, other in zip(plain, revised, strict=True):
        assert one == {name: part for name, part in other.items() if "revised" not in name}
        low, middle, high = (other[name] for name in ("revised_low", "revised", "revised_high"))
        assert all(a <= b <= c for a, b, c in zip(low, middle, high, strict=True))


def test_what_comes_later_revises(api: Api) -> None:
    def figures() -> list[float]:
        page = api.client.get(f"{STREAM}/releases?limit=1&revised=true").json()["releases"]
        found: list[float] = page[0]["revised"]
        return found

    api.post(api.asking(), 1, b"\1\0")
    released(api, 1)
    before = figures()
    assert figures() == before
    for device in range(2, 6):
        api.post(api.asking(), device, b"\1\1")
        released(api, 1)
    assert figures() != before


def test_columns_of_files(api: Api) -> None:
    released(api, 3)
    text = api.client.get(f"{STREAM}/releases?format=csv&revised=true").text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {"revised:x", "revised_low:x", "revised_high:z"} <= set(rows[0])
    assert "revised:x" not in api.client.get(f"{STREAM}/releases?format=csv").text


def test_changes_of_a_stream_that_stands_still_are_none(api: Api) -> None:
    assert api.client.get(f"{STREAM}/changes").json() == {"stream": "a", "changes": []}
    released(api, 3)
    assert api.client.get(f"{STREAM}/changes").json()["changes"] == []
