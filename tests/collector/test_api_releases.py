"""Releases by HTTP: formats, pages and the feed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from ldpstream.collector.alerts.evaluator import AlertEvaluator
from ldpstream.collector.api.limits import ReaderPool
from ldpstream.collector.api.releases import AlertEvents, _events
from tests.collector.api import (
    STREAM,
    Api,
    assert_problem,
)
from tests.collector.helpers import (
    START_MS,
)


def released(api: Api, timestamps: int) -> None:
    api.asking()
    for _ in range(timestamps):
        api.pass_time(9000)
        api.pass_time(1000)


def test_releases_as_json_csv_and_ndjson(api: Api) -> None:
    asking = api.asking()
    api.post(asking, 1, b"\1\0")
    released(api, 3)
    listing = api.client.get(f"{STREAM}/releases")
    assert listing.headers["content-type"] == "application/json"
    content = listing.json()
    assert (content["stream"], content["labels"]) == ("a", ["x", "y", "z"])
    rows = content["releases"]
    assert [row["t"] for row in rows] == [1, 2, 3]
    assert (rows[0]["fresh"], rows[0]["asked"], rows[0]["received"]) == (True, 40, 1)
    assert rows[0]["at_ms"] == START_MS + 9000
    lines = api.client.get(f"{STREAM}/releases?format=ndjson").text.splitlines()
    assert [json.loads(line) for line in lines] == rows
    table = api.client.get(f"{STREAM}/releases", headers={"Accept": "text/csv"})
    assert table.headers["content-type"].startswith("text/csv")
    head, first = table.text.splitlines()[:2]
    assert head.startswith("t,at_ms,fresh,missed,asked,received,terms_version,x,y,z,variance:x")
    assert first.split(",")[7:10] == [str(value) for value in rows[0]["values"]]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("application/json, text/csv;q=0", "application/json"),
        ("application/json, text/csv;q=0.1", "application/json"),
        ("application/json;q=0.5, Text/CSV", "text/csv"),
        ("text/html, */*;q=0.8", "application/json"),
        ("text/csv;q=, ;, q=\xb2", "application/json"),
    ],
)
def test_the_format_that_is_welcome_most(api: Api, accept: str, kind: str) -> None:
    answer = api.client.get(f"{STREAM}/releases", headers={b"Accept": accept.encode("latin-1")})
    assert answer.headers["content-type"].startswith(kind)


def test_releases_since_and_limit(api: Api) -> None:
    released(api, 4)

    def ts(query: str) -> list[int]:
        answer = api.client.get(f"{STREAM}/releases?{query}")
        return [row["t"] for row in answer.json()["releases"]]

    assert ts("since=3") == [3, 4]
    assert ts("since=2&limit=2") == [2, 3]
    assert ts("since=99") == []
    assert_problem(api.client.get(f"{STREAM}/releases?format=xml"), 400, "parameter")
    assert_problem(api.client.get(f"{STREAM}/releases?since=-1"), 400, "parameter")
    assert_problem(api.client.get(f"{STREAM}/releases?limit=0"), 400, "parameter")


async def _read_feed(api: Api, last: int, number: int) -> list[bytes]:
    """The first events after `last`."""
    events = _events(api.service, api.service.streams["a"], last, AlertEvents(), ReaderPool(), "")
    found = [await anext(events) for _ in range(number + 1)]
    await events.aclose()
    return found[1:]


def test_the_feed_catches_up_and_goes_on(api: Api) -> None:
    released(api, 3)
    events = asyncio.run(_read_feed(api, last=1, number=2))
    assert [event.splitlines()[0] for event in events] == [b"id: 2", b"id: 3"]
    data = events[0].splitlines()[2].removeprefix(b"data: ")
    (row,) = api.client.get(f"{STREAM}/releases?since=2&limit=1").json()["releases"]
    assert json.loads(data) == row


def test_many_labels_make_short_pages(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is bounded, whatever limit is asked for; the feed still has all releases."""
    released(api, 5)
    asked: list[int] = []
    found = api.service.store.releases

    def noted(stream: str, since: int, limit: int) -> Any:
        asked.append(limit)
        return found(stream, since, limit)

    monkeypatch.setattr(api.service.store, "releases", noted)
    monkeypatch.setattr("ldpstream.collector.releases.paging.NUMBERS", 6)  # two releases
    for query, expected in (("", [1, 2]), ("?since=2&limit=9", [2, 3]), ("?limit=1", [1])):
        rows = api.client.get(f"{STREAM}/releases{query}").json()["releases"]
        assert [row["t"] for row in rows] == expected
    events = asyncio.run(_read_feed(api, last=0, number=5))
    assert [event.splitlines()[0] for event in events] == [b"id: %d" % t for t in range(1, 6)]
    assert max(asked) == 2
    monkeypatch.setattr("ldpstream.collector.releases.paging.NUMBERS", 1)
    assert len(api.client.get(f"{STREAM}/releases").json()["releases"]) == 1


def test_what_feeds_tell_of_alerts_is_made_once_for_all(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def shown(evaluator: AlertEvaluator, changes: int) -> dict[str, Any]:
        made.append(changes)
        return {"stream": evaluator.stream}

    async def told(serials: list[int]) -> list[bytes]:
        events, evaluator = AlertEvents(), api.service.evaluators["a"]
        return await asyncio.gather(*(events.at(evaluator, one) for one in serials))

    monkeypatch.setattr("ldpstream.collector.api.releases.shown", shown)
    assert len(set(asyncio.run(told([7] * 50)))) == 1
    assert len(made) == 1
    asyncio.run(told([8, 9, 9]))
    assert len(made) == 3
