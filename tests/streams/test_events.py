"""Streams of events on disk: written in any order, read back, and carried forward."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpstream.domain import Domain
from ldpstream.errors import Mistake
from ldpstream.streams.events import META, EventsStream
from ldpstream.streams.home import fingerprint, home, whole_folder
from ldpstream.streams.writer import EventsWriter

LABELS = Domain.of(["none", "a", "b", "c"])
Event = tuple[int, int, int, int]
"""t, user, value, time."""


def written(
    folder: Path, batches: list[list[Event]], users: int, timestamps: int, domain: Domain = LABELS
) -> EventsStream:
    with EventsWriter(folder, domain, users, timestamps) as writer:
        for batch in batches:
            columns = np.array(batch, np.int64).reshape(-1, 4).T
            writer.add(*columns)
        return writer.finish("tiny", "key")


def held(stream: EventsStream) -> list[list[int]]:
    """Each user's label at each timestamp, with the histograms checked on the way."""
    everyone = np.arange(stream.users, dtype=np.uint32)
    rng = np.random.default_rng(0)
    table = []
    for snapshot in stream.snapshots(rng):
        labels = [snapshot.counts_of(one, rng) for one in everyone.reshape(-1, 1)]
        assert snapshot.counts.tolist() == np.sum(labels, axis=0).tolist()
        assert snapshot.counts.tolist() == snapshot.counts_of(everyone, rng).tolist()
        table.append([int(one.argmax()) for one in labels])
    return table


def test_values_are_carried_forward(tmp_path: Path) -> None:
    stream = written(tmp_path, [[(2, 0, 1, 20), (4, 0, 2, 40), (1, 1, 3, 10)]], 3, 5)
    assert held(stream) == [[0, 3, 0], [1, 3, 0], [1, 3, 0], [2, 3, 0], [2, 3, 0]]
    assert (stream.users, stream.timestamps, stream.domain) == (3, 5, LABELS)


def test_the_last_of_a_timestamp_wins_by_time_then_by_order(tmp_path: Path) -> None:
    late_first = [(1, 0, 1, 9), (1, 0, 2, 3), (1, 1, 1, 5), (1, 1, 3, 5)]
    assert held(written(tmp_path, [late_first], 2, 1)) == [[1, 3]]


def test_events_that_change_nothing_take_no_room(tmp_path: Path) -> None:
    written(tmp_path, [[(t, 0, 1, t) for t in range(1, 101)]], 2, 100)
    assert len(np.load(tmp_path / "users.npy")) == 1


def model(events: list[Event], users: int, timestamps: int) -> list[list[int]]:
    now, table = [0] * users, []
    for t in range(1, timestamps + 1):
        for _, user, value, _ in sorted((e for e in events if e[0] == t), key=lambda e: e[3]):
            now[user] = value
        table.append(list(now))
    return table


@settings(max_examples=50)  # each writes 64 files and more
@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(1, 70), st.integers(0, 3), st.integers(0, 3), st.integers(0, 5)),
            max_size=30,
        ),
        max_size=4,
    )
)
def test_any_order_of_events_gives_what_a_plain_loop_gives(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[Event]]
) -> None:
    stream = written(tmp_path_factory.mktemp("any"), batches, 4, 70)
    assert held(stream) == model([e for batch in batches for e in batch], 4, 70)


def test_more_than_256_labels(tmp_path: Path) -> None:
    stream = written(tmp_path, [[(1, 0, 299, 0), (2, 1, 256, 0)]], 2, 2, Domain.numbered(300))
    assert held(stream) == [[299, 0], [299, 256]]


def test_a_stream_travels_to_another_process_as_a_few_words(tmp_path: Path) -> None:
    stream = written(tmp_path, [[(1, 0, 1, 0)] * 10_000], 2, 2)
    packed = pickle.dumps(stream)
    assert len(packed) < 1000
    assert held(pickle.loads(packed)) == held(stream)


def test_a_stream_can_be_cut(tmp_path: Path) -> None:
    stream = written(tmp_path, [[(2, 0, 1, 0)]], 2, 3)
    assert held(stream.first(2)) == [[0, 0], [1, 0]]
    for wrong in (0, 4):
        with pytest.raises(Mistake, match=f"timestamps is {wrong}; give 1 to 3"):
            stream.first(wrong)


def test_only_finished_streams_of_this_format_open(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=META):
        EventsStream.open(tmp_path)
    written(tmp_path, [], 2, 2)
    assert not list(tmp_path.glob("spill*"))
    meta = tmp_path / META
    meta.write_text(meta.read_text().replace('"format": 1', '"format": 0'))
    with pytest.raises(ValueError, match="format"):
        EventsStream.open(tmp_path)


def write_and_stop(target: Path) -> None:
    with whole_folder(target) as fresh:
        (fresh / "file").write_text("third")
        raise KeyboardInterrupt


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "sets" / "one"
    for text in ("first", "second"):
        with whole_folder(target) as fresh:
            (fresh / "file").write_text(text)
            assert fresh != target
        assert (target / "file").read_text() == text
    with pytest.raises(KeyboardInterrupt):
        write_and_stop(target)
    assert (target / "file").read_text() == "second"
    assert [path.name for path in target.parent.iterdir()] == ["one"]


@pytest.mark.parametrize("crash", [OSError, KeyboardInterrupt])
def test_a_folder_that_cannot_be_replaced_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash: type[BaseException]
) -> None:
    target = tmp_path / "one"
    with whole_folder(target) as fresh:
        (fresh / "file").write_text("first")
    rename = Path.rename

    def fail_to_put_in_place(path: Path, to: Path) -> Path:
        if (path / "file").read_text() == "second":
            raise crash
        return rename(path, to)

    monkeypatch.setattr(Path, "rename", fail_to_put_in_place)
    with pytest.raises(crash), whole_folder(target) as fresh:
        (fresh / "file").write_text("second")
    assert (target / "file").read_text() == "first"
    assert list(tmp_path.iterdir()) == [target]


def test_a_fingerprint_is_of_content(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("same")
    two.write_text("same")
    assert fingerprint([one], 1) == fingerprint([two], 1)
    two.write_text("other")
    assert len({fingerprint([one], 1), fingerprint([one], 2), fingerprint([two], 1)}) == 3


def test_home_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LDPSTREAM_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert home() == tmp_path / "cache" / "ldpstream"
    monkeypatch.setenv("LDPSTREAM_HOME", str(tmp_path))
    assert home() == tmp_path
