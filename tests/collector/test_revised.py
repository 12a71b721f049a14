"""Revised figures beside releases, and changes, by HTTP."""

from __future__ import annotations

import csv
import io
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from ldpstream.collector.config import Suspicion
from ldpstream.collector.rounds.revised import RevisedHistory
from ldpstream.collector.store.contract import Release
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.oracles import Oracle
from ldpstream.oracles.collector_half import Support
from ldpstream.protocol.terms import Terms
from tests.collector.api import STREAM, Api
from tests.collector.helpers import START_MS, new_round, stream_config
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


def past(folder: Path, suspect: list[int]) -> SqliteStore:
    """A store with 60 tallies of 2,000 reports each; `suspect` ones say that all is z."""
    stream = stream_config(folder, population=8000)
    terms = Terms("a", stream.values, stream.epsilon, 4, 10_000, START_MS, Oracle.GRR)
    store = SqliteStore(folder / "past.sqlite", b"master secret")
    store.create_stream("a", terms.to_json())
    releases, rng = [], np.random.default_rng(1)
    for t in range(1, 61):
        name = f"{t}-publication"
        shares = [0, 0, 1] if t in suspect else [0.5, 0.25, 0.25]
        counts = rng.multinomial(2000, shares).astype(np.int64)
        store.open_round("a", new_round(t))
        store.close_round("a", name, START_MS)
        store.tally("a", {name: Support(counts, 2000)})
        content = {
            "t": t,
            "values": [0.6, 0.2, 0.2],
            "variance": [1e-3] * 3,
            "fresh": True,
            "low": [0.5, 0.1, 0.1],
            "high": [0.7, 0.3, 0.3],
            **({"suspect": [name]} if t in suspect else {}),
        }
        releases.append(Release(t, START_MS, content, 2000, 2000, missed=False))
    store.release("a", releases, {"t": 60}, 0)
    return store


def test_suspect_rounds_that_were_discarded_stay_out(tmp_path: Path) -> None:
    with closing(past(tmp_path, suspect=[30, 31, 32])) as store:
        figures = {}
        for discard in (True, False):
            stream = stream_config(tmp_path, population=8000)
            stream = replace(stream, suspicion=Suspicion(0.001, discard))
            history = RevisedHistory(stream, store)
            found = history.of(store.releases("a", 1, 100))
            figures[discard] = [one.content["revised"][2] for one in found]
            if discard:
                assert history.between(1, 60).changes == ()
        assert max(figures[True]) < 0.3
        assert max(figures[False]) > 0.5
