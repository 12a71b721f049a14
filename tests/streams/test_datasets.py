"""The loaders, on small files in exactly the formats of the official downloads."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ldpstream.errors import Mistake
from ldpstream.streams.datasets.registry import DATA_SETS, data_set, open_data_set
from ldpstream.streams.events import META, EventsStream


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDPSTREAM_HOME", str(tmp_path / "home"))


@pytest.fixture
def download(tmp_path: Path) -> Path:
    folder = tmp_path / "download"
    folder.mkdir()
    return folder


def histograms(stream: EventsStream) -> list[dict[str, int]]:
    return [
        {
            label: int(count)
            for label, count in zip(stream.domain.labels, snapshot.counts, strict=True)
            if count
        }
        for snapshot in stream.snapshots(np.random.default_rng(0))
    ]


def make_tdrive(folder: Path) -> Path:
    taxis = folder / "release" / "taxi_log_2008_by_id"
    taxis.mkdir(parents=True)
    (taxis / "1.txt").write_text(
        "1,2008-02-02 13:36:08,116.40000,39.91000\n"
        "1,2008-02-02 13:46:08,116.60000,39.95000\n"
        "1,2008-02-02 13:56:08,0.00000,0.00000\n"
    )
    (taxis / "2.txt").write_text("2,2008-02-02 13:59:59,116.20000,39.70000\n")
    (taxis / "3.txt").write_text("")
    return folder


def make_foursquare(folder: Path) -> Path:
    rows = (
        ("50756", "4f5e3a72e4b053fd6a4313f6", "Tue Apr 03 18:00:06 +0000 2012", "240"),
        ("190571", "4b4b87b5f964a5204a9f26e3", "Tue Apr 03 18:00:07 +0000 2012", "180"),
        ("50756", "4b4b87b5f964a5204a9f26e3", "Thu Apr 05 00:00:00 +0000 2012", "-60"),
        ("7", "4b4b87b5f964a5204a9f26e3", "Mon Sep 16 23:24:15 +0000 2013", "180"),
    )
    (folder / "dataset_TIST2015_Checkins.txt").write_text(
        "".join("\t".join(row) + "\n" for row in rows)
    )
    (folder / "dataset_TIST2015_POIs.txt").write_text(
        '4f5e3a72e4b053fd6a4313f6\t55.696133\t37.557842\tMiddle "Eastern" Restaurant\tRU\n'
        "4b4b87b5f964a5204a9f26e3\t41.029717\t28.974420\tHotel\tTR\n"
    )
    return folder


def make_taobao(folder: Path) -> Path:
    (folder / "raw_sample.csv").write_text(
        "user,time_stamp,adgroup_id,pid,nonclk,clk\n"
        "581738,1494137644,1,430548_1007,1,0\n"
        "449818,1494138244,3,430548_1007,0,1\n"
        "449818,1494138900,4,430548_1007,0,1\n"
        "914836,1494137650,4,430548_1007,0,1\n"
        "914837,1494650879,4,430548_1007,1,0\n"
    )
    (folder / "ad_feature.csv").write_text(
        "adgroup_id,cate_id,campaign_id,customer,brand,price\n"
        "1,9025,108570,1,NULL,170.0\n3,9025,110570,3,89471,199.0\n4,6261,1,2,3,4.5\n"
    )
    return folder


def make_msnbc(folder: Path) -> Path:
    text = (
        "% Different categories found in input file:\n\nfrontpage news tech\n\n\n"
        "% Sequences:\n\n1 1 \n2 \n3 2 2 \n" + "1 " * 120 + "\n"
    )
    with zipfile.ZipFile(folder / "msnbc990928.zip", "w") as archive:
        archive.writestr("msnbc990928.seq", text)
        archive.writestr("__MACOSX/._msnbc990928.seq", "junk")
    return folder / "msnbc990928.zip"


def make_gowalla(folder: Path) -> Path:
    """A user in each cell; on the third day the first one goes to the other corner, and back."""
    strips = range(5)
    rows = [
        f"{5 * row + column}\t2010-10-11T20:21:20Z\t40.{5 + row}01\t-73.{9 - column}01\t1"
        for row in strips
        for column in strips
    ]
    there = "0\t2010-10-13T20:00:00Z\t40.95\t-73.45\t2"
    back = "0\t2010-10-14T20:00:00Z\t40.501\t-73.901\t1"
    path = folder / "gowalla_events_nyc.csv.gz"
    path.write_bytes(gzip.compress("\n".join([*rows, back, there]).encode() + b"\n"))
    return path


def make_nycflights(folder: Path) -> Path:
    header = (
        "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,"
        "flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour\n"
    )
    flights = (
        "2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z\n"
        "2013,1,1,,600,,,800,,UA,1,N99999,LGA,ORD,,733,6,0,2013-01-01T11:00:00Z\n"
        "2013,1,1,555,600,-5,700,700,0,B6,2,N2,JFK,BOS,50,187,6,0,2013-01-01T11:00:00Z\n"
        "2013,1,1,800,800,0,900,900,0,B6,3,,JFK,BOS,50,187,8,0,2013-01-01T13:00:00Z\n"
    )
    with zipfile.ZipFile(folder / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", header + flights)
    return folder / "flights.csv.zip"


MAKERS: dict[str, Callable[[Path], Path]] = {
    "tdrive": make_tdrive,
    "foursquare": make_foursquare,
    "taobao": make_taobao,
    "msnbc": make_msnbc,
    "gowalla": make_gowalla,
    "nycflights": make_nycflights,
}


def test_every_data_set_is_tested_here() -> None:
    assert MAKERS.keys() == DATA_SETS.keys()


def prepared(name: str, download: Path) -> EventsStream:
    return data_set(name).prepare(MAKERS[name](download))


def test_tdrive(download: Path) -> None:
    stream = prepared("tdrive", download)
    areas = ("centre", "north-east", "north-west", "south-east", "south-west")
    assert stream.domain.labels == ("none", *areas)
    assert histograms(stream) == [
        {"none": 2, "centre": 1},
        {"none": 2, "north-east": 1},
        {"none": 1, "north-east": 1, "south-west": 1},
    ]


def test_foursquare(download: Path) -> None:
    stream = prepared("foursquare", download)
    assert (stream.users, stream.timestamps) == (2, 447)  # who comes after that is not there
    assert stream.domain.labels == ("TR", "RU")
    assert histograms(stream)[:3] == [{"TR": 1, "RU": 1}, {"TR": 1, "RU": 1}, {"TR": 2}]


def test_taobao(download: Path) -> None:
    stream = prepared("taobao", download)
    assert (stream.users, stream.domain.labels) == (3, ("none", "6261", "9025"))
    assert histograms(stream) == [
        {"none": 2, "6261": 1},
        {"none": 1, "6261": 1, "9025": 1},
        {"none": 1, "6261": 2},
    ]


def test_msnbc(download: Path) -> None:
    stream = prepared("msnbc", download)
    assert stream.domain.labels == ("frontpage", "news", "tech", "left")
    found = histograms(stream)
    assert len(found) == 100
    assert found[:4] == [
        {"frontpage": 2, "news": 1, "tech": 1},
        {"frontpage": 2, "news": 1, "left": 1},
        {"frontpage": 1, "news": 1, "left": 2},
        {"frontpage": 1, "left": 3},
    ]
    assert found[-1] == {"frontpage": 1, "left": 3}


def test_gowalla(download: Path) -> None:
    stream = prepared("gowalla", download)
    assert (stream.users, stream.timestamps, len(stream.domain)) == (25, 4, 25)
    first, second, third, fourth = histograms(stream)
    assert first == second == fourth == dict.fromkeys(stream.domain.labels, 1)
    del first["row 1 column 1"]
    assert third == first | {"row 5 column 5": 2}


def test_nycflights(download: Path) -> None:
    stream = prepared("nycflights", download)
    assert stream.users == 3
    none = {"none": 1}  # the aircraft whose only flight was cancelled
    assert histograms(stream) == [
        none | {"EWR": 1, "JFK": 1},  # from 10:00 UTC: took off at 10:17 and at 10:55
        none | {"EWR": 1, "BOS": 1},  # landed at 11:45
        none | {"EWR": 1, "BOS": 1},
        none | {"EWR": 1, "BOS": 1},
        none | {"IAH": 1, "BOS": 1},  # landed at 14:04
    ]


@pytest.mark.parametrize("name", MAKERS)
def test_a_prepared_set_is_kept_until_its_files_change(name: str, download: Path) -> None:
    source = MAKERS[name](download)
    known = data_set(name)
    with pytest.raises(Mistake, match=f"{name} is not prepared.*data prepare {name} --from PATH"):
        open_data_set(name)
    first = known.prepare(source)
    assert open_data_set(name) == first
    stages: list[str] = []
    assert known.prepare(source, lambda stage, done, total: stages.append(stage)) == first
    assert stages == ["looking at the files"]


@pytest.mark.parametrize("name", MAKERS)
def test_a_damaged_set_counts_as_not_prepared(name: str, download: Path) -> None:
    prepared(name, download)
    meta = data_set(name).folder / META
    meta.write_text(json.dumps(json.loads(meta.read_text()) | {"format": 99}))
    assert data_set(name).open() is None


@pytest.mark.parametrize("name", MAKERS)
def test_a_wrong_path_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="no such file or folder; get it from"):
        data_set(name).prepare(tmp_path / "gone")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(Mistake, match=r"empty: .*; give the "):
        data_set(name).prepare(empty)


def test_a_file_of_a_pair_may_be_given_itself(download: Path) -> None:
    make_taobao(download)
    assert data_set("taobao").prepare(download / "raw_sample.csv").users == 3


@pytest.mark.parametrize(
    ("name", "file", "text", "said"),
    [
        ("msnbc", "a.seq", "no header\n1 2\n", "no header of categories"),
        ("msnbc", "a.seq", "% x\n\na b\n\n% Sequences:\n\n1 2\n9\n", "a row has no value that"),
        ("gowalla", "a.csv", "0\tyesterday\t40.1\t-73.1\t1\n", "a row has no time that can be"),
        ("tdrive", "1.txt", "1,never,116.4,39.9\n", "a row has no time that can be read"),
        ("msnbc", "a.zip", "not a zip", "no .seq file inside"),
        ("nycflights", "flights.csv.zip", "not a zip", "no flights.csv inside"),
        ("gowalla", "a.csv", "0\t2010-10-11T20:21:20Z\tx\ty\t1\n", "a.csv: cannot be read"),
        ("nycflights", "flights.csv", "year,month\n2013,1\n", "unable to find column"),
    ],
)
def test_damaged_downloads_are_named(
    download: Path, name: str, file: str, text: str, said: str
) -> None:
    (download / file).write_text(text)
    with pytest.raises(Mistake, match=said) as caught:
        data_set(name).prepare(download / file)
    assert "\n" not in str(caught.value)
    assert not data_set(name).folder.exists()


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(Mistake, match="no data set 'taxi'; use one of: tdrive"):
        data_set("taxi")
