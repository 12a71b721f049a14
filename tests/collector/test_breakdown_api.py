"""Groups of devices in what readers get: releases, files, metrics, alerts and the privacy page."""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from starlette.testclient import TestClient

from ldpstream.cli import run
from ldpstream.cli.answers import Answer, read_answer
from ldpstream.cli.export import _of_group
from ldpstream.collector.api.app import build_app
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.service.reloading import plan
from ldpstream.collector.service.service import Service
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.errors import Mistake
from tests.collector.api import ADMIN, STREAM, assert_problem
from tests.collector.helpers import SECRETS, START_MS, config, stream_config
from tests.collector.strata import StrataWorld
from tests.collector.test_breakdown import GIVEN, Content, parted
from tests.collector.test_metrics import scrape, value
from tests.waiting import eventually

ALERTS = [
    {"label": "x", "above": 0.5, "group": "country:de"},
    {"label": "x", "above": 0.5, "group": "country:fr", "name": "merged"},
    {"label": "x", "above": 0.5, "name": "all"},
]
PARTED: dict[str, Any] = GIVEN | {"least_group": 130, "alert": ALERTS, "population": 400}
LAST_T = 9


class Reader:
    """What a reader sees of a collector whose store has releases of groups."""

    def __init__(
        self, client: TestClient, service: Service, folder: Path, clock: ManualClock
    ) -> None:
        self.client, self.service, self.folder, self.clock = client, service, folder, clock

    def get(self, **query: object) -> Any:
        return self.client.get(f"{STREAM}/releases", params=query)  # type: ignore[arg-type]

    def pass_timestamp(self) -> None:
        """Let a timestamp pass in which nobody reports, so that alerts look at its release."""
        stream, evaluator = self.service.streams["a"], self.service.evaluators["a"]
        t = stream.hub.last_t + 1
        self.clock.advance_to(max(self.clock.now_ms(), stream.terms.start_of(t)))
        self.service.scheduler.wake()
        eventually(lambda: any(one.stored.t == t for one in stream.hub.open.values()))
        self.clock.advance_to(stream.history.deadline_of(t))
        self.service.scheduler.wake()
        eventually(lambda: evaluator.last_t == t)

    def releases(self, **query: object) -> list[Content]:
        found: list[Content] = self.get(**query).json()["releases"]
        return found


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """Of 400 devices 200 are in Germany; all others are shown together."""
    world = StrataWorld(tmp_path, parted(400), PARTED)
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        world.live(store, LAST_T)
    given = {"selection": "slots"} | PARTED
    service = Service(config(tmp_path, **given), SECRETS, world.clock)
    with TestClient(build_app(service), raise_server_exceptions=False) as client:
        yield Reader(client, service, tmp_path, world.clock)


def test_releases_of_a_group_have_its_figures(reader: Reader) -> None:
    whole, part = reader.releases()[-1], reader.releases(group="country:de")[-1]
    (group,) = [one for one in whole["groups"] if one["value"] == "de"]
    assert {key: part[key] for key in ("values", "variance", "low", "high")} == {
        key: group[key] for key in ("values", "variance", "low", "high")
    }
    assert (part["group"], part["share"], part["received"]) == ("country:de", 0.5, 100)
    assert "groups" not in part


def test_a_release_that_does_not_show_the_group_says_so(reader: Reader) -> None:
    part = reader.releases(group="country:fr")[-1]
    assert (part["values"], part["low"], part["fresh"]) == (None, None, False)
    assert part["merged_into"] == "other"
    others = reader.releases(group="country:other")[-1]
    assert (others["merged"], others["devices"]) == (["fr", "other"], 200)


@pytest.mark.parametrize("group", ["country:it", "country", "model:a", ""])
def test_an_unknown_group_is_refused(group: str, reader: Reader) -> None:
    answer = reader.get(group=group)
    assert_problem(answer, 400, "parameter")
    assert "country:de, country:fr, country:other" in answer.json()["detail"]


def test_the_history_of_groups_is_not_revised(reader: Reader) -> None:
    assert_problem(reader.get(group="country:de", revised="true"), 400, "parameter")


def test_csv_is_of_one_group(reader: Reader) -> None:
    table = [*csv.DictReader(io.StringIO(reader.get(group="country:de", format="csv").text))]
    assert float(table[-1]["x"]) == reader.releases(group="country:de")[-1]["values"][0]
    hidden = [*csv.DictReader(io.StringIO(reader.get(group="country:fr", format="csv").text))]
    assert {row["x"] for row in hidden} == {""}


def test_tables_have_rows_for_each_group(reader: Reader) -> None:
    table = pl.read_parquet(io.BytesIO(reader.get(format="parquet").content))
    last = table.filter(pl.col("t") == LAST_T)
    assert last.select("attribute", "group").unique(maintain_order=True).rows() == [
        ("", ""),
        ("country", "de"),
        ("country", "other"),
    ]
    whole = reader.releases()[-1]
    for row in last.rows(named=True):
        groups = [one for one in whole["groups"] if one["value"] == row["group"]]
        figures = groups[0] if groups else whole
        assert row["value"] == figures["values"]["xyz".index(row["label"])]
    one = pl.read_ipc(io.BytesIO(reader.get(format="arrow", group="country:fr").content))
    assert set(one["group"]) == {"fr"}
    assert one["value"].null_count() == len(one) == 3 * LAST_T


@pytest.mark.parametrize("part", [[], ["--group", "country:de"]], ids=["all", "group"])
def test_export_writes_groups(
    part: list[str], reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a store as the API does, and the same from a collector."""

    def asked(transport: object, url: str, path: str, token: str) -> Answer:
        return read_answer(path, reader.client.get(path).content)

    monkeypatch.setattr("ldpstream.cli.export._ask", asked)
    query = dict(zip(["group"], part[1:], strict=False))
    for kind in ("parquet", "csv"):
        out = reader.folder / f"out.{kind}"
        words = ["export", "--stream", "a", "--out", str(out), "--format", kind, *part]
        assert run([*words, "--store", str(reader.folder / "c.sqlite")]) == 0
        written = out.read_bytes()
        assert written == reader.get(format=kind, **query).content
        assert run([*words, "--collector", "http://127.0.0.1:1"]) == 0
        assert out.read_bytes() == written


def test_an_unknown_group_is_not_exported(
    reader: Reader, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", "--stream", "a", "--out", str(reader.folder / "o"), "--group", "country:it"]
    assert run([*words, "--store", str(reader.folder / "c.sqlite")]) == 2
    assert "--group is 'country:it'; give one of country:de" in capsys.readouterr().err
    with pytest.raises(Mistake, match="groups of at least `least_group` devices"):
        _of_group("country:de", [])  # a fleet in which no group is large enough


def test_metrics_have_groups_as_labels(reader: Reader) -> None:
    seen, last = scrape(reader), reader.releases()[-1]  # type: ignore[arg-type]
    (de,) = [one for one in last["groups"] if one["value"] == "de"]
    assert value(seen, "frequency", label="x") == last["values"][0]
    own = {"label": "x", "attribute": "country", "group": "de"}
    assert value(seen, "frequency", **own) == de["values"][0]
    assert value(seen, "frequency_high", **own) == de["high"][0]
    assert value(seen, "frequency", **own | {"group": "fr"}) is None


def test_alerts_may_be_about_a_group(reader: Reader) -> None:
    """Half of the devices hold x, and all of those in Germany."""
    reader.pass_timestamp()
    alerts = {one["name"]: one for one in reader.client.get(f"{STREAM}/alerts").json()["alerts"]}
    assert set(alerts) == {"x above 0.5 in country:de", "merged", "all"}
    german = alerts["x above 0.5 in country:de"]
    assert german["rule"]["group"] == "country:de"
    assert german["value"] == reader.releases(group="country:de")[-1]["values"][0] > 0.7
    assert (alerts["merged"]["value"], alerts["merged"]["state"]) == (None, "inactive")


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"label": "x", "above": 0.5, "group": "country:it"}, "is no group of this stream's"),
        ({"no_reports": "5m", "group": "country:de"}, "a rule about a group compares its figures"),
    ],
)
def test_a_rule_about_no_group_is_refused(
    rule: dict[str, object], told: str, reader: Reader
) -> None:
    answer = reader.client.post(f"{STREAM}/alerts/rules", json=rule, headers=ADMIN)
    assert_problem(answer, 400, "alert-rule")
    assert told in answer.json()["detail"]


def test_a_rule_about_a_group_that_is_gone_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given: dict[str, Any] = {"selection": "slots"} | GIVEN
    kept = {"label": "x", "above": 0.5, "group": "country:it"}
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        Coordinator(stream_config(tmp_path, **given), store, ManualClock(START_MS))
        store.write_note("a", "alert-rules", {"rules": [kept, kept | {"group": "country:fr"}]})
    service = Service(config(tmp_path, **given), SECRETS, ManualClock(START_MS))
    with caplog.at_level(logging.WARNING), TestClient(build_app(service)):
        warned = [one for one in caplog.records if "that is gone" in one.message]
    assert [vars(one)["alert"] for one in warned] == ["x above 0.5 in country:it"]


def test_participants_are_told_what_is_sent_openly(reader: Reader) -> None:
    told = reader.client.get("/privacy/a", headers={"Accept": "application/json"}).json()
    assert "openly of its device: country (de, fr, other)" in told["attributes"]
    assert "nothing protects them" in told["attributes"]
    described = reader.client.get(STREAM).json()
    assert described["attributes"] == [{"name": "country", "values": ["de", "fr"]}]


def test_the_smallest_group_that_is_shown_changes_by_a_reload(reader: Reader) -> None:
    old = reader.service.config
    new = config(reader.folder, **{"selection": "slots"} | PARTED | {"least_group": 100})
    told = plan(old, new, reader.service.store, reader.service.clock.now_ms())
    assert (told.changes, told.refused) == (("a: least_group = 130 -> 100",), ())
