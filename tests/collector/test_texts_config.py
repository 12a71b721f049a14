"""The keys of a stream of texts: what they give, and that each mistake is told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import SelectionMethod, StreamConfig, parse
from ldpstream.collector.rounds.changes import Requirement, differences
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.rounds.loading import settled
from ldpstream.collector.service.reloading import plan
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.errors import Mistake
from ldpstream.oracles import Oracle
from ldpstream.protocol.terms import Terms
from ldpstream.vocabulary import Vocabulary
from tests.collector.helpers import SECRETS

GOOD = """\
[collector]
[[stream]]
name = "words"
vocabulary = "open"
epsilon = 2
window = 20
interval = "1s"
population = 1_000_000
"""


def stream_of(more: str = "", file: Path = Path("c.toml"), text: str = GOOD) -> StreamConfig:
    return parse(text + more, file).streams[0]


def terms_of(config: StreamConfig, folder: Path) -> Terms:
    store = SqliteStore(folder / "c.sqlite", SECRETS.master)
    try:
        return Coordinator(config, store, ManualClock(0)).terms
    finally:
        store.close()


def test_what_is_not_given_is_planned() -> None:
    stream = stream_of()
    assert stream.values == Vocabulary(0, 20, (2, 4, 6))
    assert (stream.selection, stream.oracle, stream.mechanism) == (
        SelectionMethod.SLOTS,
        Oracle.HADAMARD,
        "lpf",
    )
    assert (stream.candidates, stream.top, stream.labels) == ((), 100, ())
    assert len(stream_of(text=GOOD.replace("1_000_000", "1000")).values) == (1 << 16) - 1
    assert len(stream_of(text=GOOD.replace("1_000_000", '"auto"')).values) == (1 << 20) - 1


def test_all_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text('\ufeffmünchen\nrome\n\nrome, "x"\n')
    more = (
        'bits = 18\nprefixes = [3]\nsalt = "00000000000000ff"\ncandidates = ["rome", "a"]\n'
        'candidates_file = "texts.txt"\ntop = 7\n'
        '[[stream.alert]]\nlabel = "anything at all"\nabove = 0.1\n'
    )
    stream = stream_of(more, tmp_path / "c.toml")
    assert stream.values == Vocabulary(255, 18, (3,))
    assert stream.candidates == ("rome", "a", "münchen", 'rome, "x"')
    assert stream.top == 7
    assert stream.alerts[0].label == "anything at all"


@pytest.mark.parametrize(
    ("more", "line", "what"),
    [
        ('labels = ["x", "y"]', 9, "a stream of texts cannot have labels"),
        ("range = [0, 1]", 9, "cannot have a range"),
        ('query = "mean"', 9, "cannot have a query"),
        ('other = "x"', 9, "cannot have other"),
        ("thresholds = { x = 0.5 }", 9, "use an alert with the text as its label"),
        ('[stream.attributes]\ncountry = ["de"]', 9, "cannot have attributes"),
        ('[[stream.level]]\nname = "careful"\nepsilon = 1\nwindow = 20', 9, "cannot have levels"),
        ("[stream.successor]\nversion = 2", 9, "cannot have a successor"),
        ('mechanism = "lpa"', 9, "a stream of texts has mechanism lpf, not lpa"),
        ('selection = "open"', 9, "has selection slots, not open"),
        ('oracle = "oue"', 9, "has oracle hadamard, not oue"),
        ('oracle = "robust"', 9, "has oracle hadamard, not robust"),
        ("bits = 15", 9, "bits is 15"),
        ("bits = 25", 9, "bits is 25"),
        ("prefixes = [4, 2]", 9, "prefixes of the vocabulary"),
        ('prefixes = ["2"]', 9, "prefixes is"),
        ("prefixes = [true]", 9, "prefixes is"),
        ('salt = "FF"', 9, "salt is 'FF'"),
        ("top = 0", 9, "top is 0"),
        ("top = 1001", 9, "top is 1001"),
        ("candidates = [1]", 9, "candidates has 1 in it"),
        ('candidates_file = "nowhere.txt"', 9, "nowhere.txt: No such file"),
        ('[[stream.alert]]\nlabel = "x"\nchanged_by = 0.1', 11, "changes are not detected"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(
    more: str, line: int, what: str, tmp_path: Path
) -> None:
    with pytest.raises(Mistake) as caught:
        stream_of(more + "\n", tmp_path / "c.toml")
    assert f"line {line}: " in str(caught.value)
    assert what in str(caught.value)


def test_a_key_that_is_misspelt_is_known_by_its_likeness() -> None:
    with pytest.raises(Mistake, match=r"did you mean candidates\? use one of: .*bits, candidates"):
        stream_of('canidates = ["a"]\n')


def test_another_word_than_open_is_refused() -> None:
    with pytest.raises(Mistake, match=r"line 4: vocabulary is 'closed'"):
        stream_of(text=GOOD.replace("open", "closed"))


def test_a_log_does_not_count_texts() -> None:
    head = '[collector]\nstore = "postgresql://u@h/d"\ningest = "nats://h:4222"\n'
    with pytest.raises(Mistake, match="line 6: a report log does not count texts"):
        stream_of(text=GOOD.replace("[collector]\n", head))


def test_releases_are_kept_as_long_as_figures_rest_on_their_rounds() -> None:
    hours = GOOD.replace('"1s"', '"2min"') + '[stream.retention]\nreleases = "{}"\n'
    assert stream_of(text=hours.format("3h")).reach == 60
    with pytest.raises(Mistake, match="releases is less than a window of 60 timestamps"):
        stream_of(text=hours.format("1h"))


def test_the_store_decides_what_the_file_leaves_open(tmp_path: Path) -> None:
    stored = terms_of(stream_of(), tmp_path)
    assert isinstance(stored.values, Vocabulary)
    assert stored.values.salt != 0
    grown = settled(stream_of(text=GOOD.replace("1_000_000", "20_000_000")), stored)
    assert grown.values == stored.values
    assert [*differences(grown, stored)] == []


@pytest.mark.parametrize(
    "more", ["bits = 17", "prefixes = [2]", 'salt = "00000000000000ff"', "epsilon = 1"]
)
def test_what_is_pinned_cannot_change(more: str, tmp_path: Path) -> None:
    stored = terms_of(stream_of(), tmp_path)
    text = GOOD.replace("epsilon = 2\n", "") if "epsilon" in more else GOOD
    changed = settled(stream_of(more, text=text), stored)
    (difference,) = differences(changed, stored)
    assert difference.verdict is Requirement.IMPOSSIBLE
    assert difference.why == "a stream of texts can have no successor"
    with pytest.raises(Mistake, match="can have no successor"):
        terms_of(stream_of(more, text=text), tmp_path)


def test_candidates_and_top_change_by_a_reload(tmp_path: Path) -> None:
    terms_of(stream_of(), tmp_path)
    old = parse(GOOD, tmp_path / "c.toml")
    new = parse(GOOD + 'candidates = ["a", "b"]\ntop = 5\n', tmp_path / "c.toml")
    store = SqliteStore(tmp_path / "c.sqlite", SECRETS.master)
    try:
        planned = plan(old, new, store, 0)
    finally:
        store.close()
    assert planned.refused == ()
    assert planned.changes == (
        "words: candidates = 0 texts -> 2 texts ('a', 'b')",
        "words: top = 100 -> 5",
    )
