"""The configuration file: what it gives, and that every mistake is told with its line."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ldpstream.cli import run
from ldpstream.collector.config import SelectionMethod, load, parse
from ldpstream.collector.config.table import ConfigTable
from ldpstream.collector.config.toml_lines import line_of
from ldpstream.collector.credentials.secrets import Secrets
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.errors import Mistake
from ldpstream.mechanisms.messages import Purpose
from ldpstream.oracles import Oracle
from tests.collector.helpers import SECRETS

EXAMPLE = Path(__file__).parents[2] / "examples" / "stream.toml"

GOOD = """\
[collector]
listen = "127.0.0.1:8080"

[collector.limits]
batch = 500

[[stream]]
name = "a"
labels = ["x", "y"]
epsilon = 0.5
window = 10
interval = "2s"
population = 1000

[[stream]]
name = "b"
labels = ["x", "y"]
epsilon = 1
window = 10
interval = "1min"
start = 2030-01-01T00:00:00Z
mechanism = "lbd"
oracle = "oue"
selection = "roster"
population = 1000
deadlines = { dissimilarity = 0.3, publication = 0.5 }
thresholds = { x = 0.25 }
public = false
other = "y"
"""
FILE = Path("some/collector.toml")
LABELS = 'labels = ["x", "y"]\nepsilon = 0.5'
BINNED = 'query = "distribution"\nrange = [0, 1]'
NARROW = 'query = "distribution"\nrange = [1e17, 100000000000000032]'


def test_the_example_is_good() -> None:
    assert load(EXAMPLE).streams[0].name == "regions"


def test_what_a_file_gives() -> None:
    config = parse(GOOD, FILE)
    assert (config.host, config.port, config.limits.batch) == ("127.0.0.1", 8080, 500)
    assert config.store == Path("some/ldpstream-data/collector.sqlite")
    first, second = config.streams
    assert (first.selection, first.oracle, first.start_ms) == (SelectionMethod.SLOTS, None, None)
    assert first.epsilon.nano == 500_000_000
    assert (second.interval_ms, second.start_ms) == (60_000, 1_893_456_000_000)
    assert (second.selection, second.oracle) == (SelectionMethod.ROSTER, Oracle.OUE)
    assert first.settings.reshuffle == 16 * first.window
    assert second.settings.reshuffle is None
    assert second.deadlines == {Purpose.DISSIMILARITY: 0.3, Purpose.PUBLICATION: 0.5}
    assert second.thresholds == {"x": 0.25}
    assert (first.public, second.public) == (True, False)
    assert (first.other, second.other) == (None, "y")


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ('listen = "127.0.0.1:8080"', 'listen = "8080"', 2, "host:port"),
        ('listen = "127.0.0.1:8080"', "listen = 8080", 2, "a text in quotes"),
        ('listen = "127.0.0.1:8080"', 'liste = ""', 2, "no key 'liste'"),
        ('listen = "127.0.0.1:8080"', 'ingest = "nats://log:4222"', 2, "a store on PostgreSQL"),
        ('listen = "127.0.0.1:8080"', 'ingest = "kafka://log"', 2, "give nats://host:4222"),
        ('listen = "127.0.0.1:8080"', "log = { replicas = 3 }", 2, "give ingest as well"),
        ('listen = "127.0.0.1:8080"', r'listen = "a\u0000b:80"', 2, "without NUL"),
        ('listen = "127.0.0.1:8080"', r'store = "a\u0000b/c.sqlite"', 2, "without NUL"),
        ("batch = 500", "batch = 0", 5, "1 or more"),
        ("batch = 500", f"batch = 0x{'f' * 5000}", 5, "20000 bits"),
        ("batch = 500", "bach = 500", 5, "use one of: batch"),
        ('name = "a"', 'name = "A b"', 8, "a-z"),
        ('name = "a"', 'name = "b"', 16, "used twice"),
        ('name = "a"', 'name = "a"\ncolour = "red"', 9, "no key 'colour'"),
        ('name = "a"', 'name = "a"\ncolour = "red"', 9, "oracle, other, paused, population"),
        (LABELS, 'labels = ["x"]\nepsilon = 0.5', 9, "1 labels"),
        (LABELS, 'labels = ["x", "x"]\nepsilon = 0.5', 9, "twice"),
        (LABELS, f'labels = ["x", "{1001 * "y"}"]\nepsilon = 0.5', 9, "1001 characters"),
        (LABELS, 'labels = ["x", 1]\nepsilon = 0.5', 9, "quotes"),
        ("epsilon = 0.5", 'other = "q"\nepsilon = 0.5', 10, "'q' is not a label of this domain"),
        ("epsilon = 0.5", "other = 1\nepsilon = 0.5", 10, "a text in quotes"),
        (LABELS, 'range = [0, 1]\nother = "mean"\nepsilon = 0.5', 10, "a stream of numbers"),
        ("epsilon = 0.5", "range = [0, 1]\nepsilon = 0.5", 10, "labels or a range"),
        (LABELS, "range = [0]\nepsilon = 0.5", 9, "a list of 2 numbers"),
        (LABELS, "range = [1, 0]\nepsilon = 0.5", 9, "the lower one first"),
        (LABELS, f"range = [0, {10**400}]\nepsilon = 0.5", 9, "1329 bits"),
        (LABELS, "range = [0, 1e18]\nepsilon = 0.5", 9, "18 digits before the point"),
        (LABELS, f"{BINNED.replace('0', '1e-19')}\nepsilon = 0.5", 10, "18 after it"),
        (LABELS, 'range = [0, 1]\noracle = "grr"\nepsilon = 0.5', 10, "no oracle 'grr'"),
        (LABELS, 'range = [0, 1]\nquery = "all"\nepsilon = 0.5', 10, "mean, distribution"),
        (LABELS, "range = [0, 1]\nbins = 8\nepsilon = 0.5", 10, "no key 'bins'"),
        (LABELS, f"{BINNED}\nbins = 1\nepsilon = 0.5", 11, "2 or more"),
        (LABELS, f"{BINNED}\nbins = 300\nepsilon = 0.5", 11, "2 to 256"),
        (
            LABELS,
            f'{BINNED}\nalert = [{{label = "p50", changed_by = 1}}]\nepsilon = 0.5',
            11,
            "not detected",
        ),
        (LABELS, f"{NARROW}\nbins = 32\nepsilon = 0.5", 11, "ends are different numbers"),
        (LABELS, f'{BINNED}\noracle = "duchi"\nepsilon = 0.5', 11, "no oracle 'duchi'"),
        (LABELS, f'{BINNED}\nmechanism = "lba"\nepsilon = 0.5', 11, "all of epsilon"),
        (LABELS, f"{BINNED}\nsuccessor = {{}}\nepsilon = 0.5", 11, "cannot have a successor"),
        ("epsilon = 0.5", "epsilon = 0", 10, "epsilon is 0"),
        ("epsilon = 0.5", "epsilon = true", 10, "a number"),
        ("epsilon = 0.5\n", "", 7, "epsilon is missing"),
        ("epsilon = 0.5", "epsilom = 0.5", 10, "no key 'epsilom' here; did you mean epsilon?"),
        ('name = "a"', 'name = "a"\nallowed_origin = []', 9, "did you mean allowed_origins?"),
        ("epsilon = 0.5", "Epsilon = 0.5", 10, "no key 'Epsilon' here; did you mean epsilon?"),
        (
            LABELS,
            'label = ["x", "y"]\nepsilon = 0.5',
            9,
            "'label' here; did you mean labels?",
        ),
        ('mechanism = "lbd"', 'mechanizm = "lbd"', 22, "did you mean mechanism? use one of:"),
        ('window = 10\ninterval = "2s"', 'window = 0\ninterval = "2s"', 11, "1 or more"),
        ('window = 10\ninterval = "2s"', 'window = 1.5\ninterval = "2s"', 11, "whole number"),
        ('10\ninterval = "2s"', '2147483647\ninterval = "365d"', 11, "give at most 142"),
        ('interval = "2s"', 'interval = "2 weeks"', 12, "'2 weeks'"),
        ('interval = "2s"', 'interval = "10ms"', 12, "at least 100ms"),
        ("start = 2030-01-01T00:00:00Z", "start = 2030-01-01T00:00:00", 21, "offset"),
        ("start = 2030-01", "start = 1960-01", 21, "a date from 1970 on"),
        ("start = 2030-01-01T00:00:00Z", 'start = "a\\nb"', 21, "start is 'a\\nb'"),
        ("start = 2030-01-01T00:00:00Z", "start = {a = true}", 21, "start is {a = true};"),
        ("epsilon = 0.5", "epsilon = [true, 2030-01-01]", 10, "epsilon is [true, 2030-01-01];"),
        ('mechanism = "lbd"', 'mechanism = "lbx"', 22, "no mechanism 'lbx'"),
        ('oracle = "oue"', 'oracle = "delphi"', 23, "no oracle 'delphi'"),
        ('selection = "roster"', 'selection = "all"', 24, "slots, open, roster"),
        ('selection = "roster"', 'selection = "slots"', 24, "lbd must ask devices"),
        ("population = 1000\n\n", "population = 3\n\n", 7, "3 users are too few"),
        ("publication = 0.5", "publication = 1.5", 26, "share of the interval"),
        ("publication = 0.5", "publication = 0.2", 26, "later deadline"),
        ("publication = 0.5", "publish = 0.5", 26, "no key 'publish'"),
        ("{ x = 0.25 }", "{ q = 0.25 }", 27, "'q' is not a label"),
        ("{ x = 0.25 }", "{ x = nan }", 27, "a finite number"),
        ("{ x = 0.25 }", f"{{ x = {10**400} }}", 27, "1329 bits"),
        ("public = false", 'public = "no"', 28, "true or false"),
        ("public = false", "public = false\npublic = false", 29, "TOML"),
        ("epsilon = 0.5", "eps = 0.5", 10, "no key 'eps' here; did you mean epsilon?"),
        ("epsilon = 0.5", "budget = 0.5", 10, "no key 'budget' here, and epsilon is missing"),
        (
            "epsilon = 0.5",
            "budget = 0.5\ncolour = 1",
            10,
            "no keys 'budget', 'colour' here, and epsilon is missing; add epsilon",
        ),
        ('[[stream]]\nname = "a"', '[stream]\nname = "a"', 1, ""),
        ("[collector]\n", "[colector]\n", 1, "no key 'colector'"),
    ],
)
def test_a_mistake_is_told_with_its_line_in_one_line(
    old: str, new: str, line: int, told: str
) -> None:
    assert GOOD.count(old) == 1
    with pytest.raises(Mistake) as caught:
        parse(GOOD.replace(old, new), FILE)
    message = str(caught.value)
    assert "\n" not in message
    assert told in message
    if told:
        assert f"some/collector.toml, line {line}:" in message


STREAM = '[[stream]]\nname = "a"\nepsilon = 1\nwindow = 4\ninterval = "10s"\n'
RULE = '[[stream.alert]]\nlabel = "{}"\nabove = {}\n'


@pytest.mark.parametrize(
    ("values", "label", "level", "told"),
    [
        ('labels = ["x", "y"]', "x", 0.3, None),
        ('labels = ["x", "y"]', "x", 30, "is at 30, and its figure is between 0 and 1"),
        ('vocabulary = "open"', "x", -0.5, "is at -0.5, and its figure is between 0 and 1"),
        ("range = [0, 5]", "mean", 4, None),
        ("range = [0, 5]", "mean", 40, "is at 40, and its figure is between 0 and 5"),
        ('range = [0, 5]\nquery = "distribution"', "p99", 4, None),
        ('range = [2, 5]\nquery = "distribution"', "p99", 1, "figure is between 2 and 5"),
    ],
)
def test_thresholds_that_no_figure_can_pass_are_warned_of(
    values: str, label: str, level: float, told: str | None
) -> None:
    (stream,) = parse(f"{STREAM}{values}\n{RULE.format(label, level)}", FILE).streams
    assert [told in one for one in stream.warnings if told] == [True] * bool(told)
    assert bool(stream.warnings) == bool(told)
    if "vocabulary" not in values:
        text = f"{STREAM}{values}\nthresholds = {{ {label} = {level} }}\n"
        (stream,) = parse(text, FILE).streams
        assert bool(stream.warnings) == bool(told)


def test_of_many_labels_the_nearest_are_named() -> None:
    values = 'range = [0, 5]\nquery = "distribution"\n'
    with pytest.raises(Mistake, match=r"'p98' is not a label; use one of: .*p90, p99"):
        parse(f"{STREAM}{values}{RULE.format('p98', 2)}", FILE)


def test_a_log_beside_a_database() -> None:
    """`retention` and `replicas` belong to the log; without `ingest` there is no log."""
    listen = 'listen = "127.0.0.1:8080"\n'
    store = listen + 'store = "postgresql://me@db/streams"\n'
    assert parse(GOOD.replace(listen, store), FILE).ingest is None
    log = (
        store + 'ingest = "nats://me:hunter2@log:4222"\nlog = { retention = "2d", replicas = 3 }\n'
    )
    config = parse(GOOD.replace(listen, log), FILE)
    assert config.ingest is not None
    assert (config.ingest.retention_hours, config.ingest.replicas) == (48, 3)
    assert "hunter2" not in repr(config)


@pytest.mark.parametrize(("interval", "kept"), [("60s", True), ("61s", False), ("2d", False)])
def test_a_log_keeps_reports_until_they_are_counted(interval: str, kept: bool) -> None:
    listen = 'listen = "127.0.0.1:8080"\n'
    log = 'store = "postgresql://me@db/streams"\ningest = "nats://log"\nlog.retention = "2m"\n'
    text = GOOD.replace(listen, log).replace('interval = "2s"', f'interval = "{interval}"', 1)
    if kept:
        assert parse(text, FILE).ingest is not None
        return
    with pytest.raises(Mistake, match=r"line 14: the log keeps reports .* less than 2 intervals"):
        parse(text, FILE)


def test_a_file_without_streams_is_refused() -> None:
    with pytest.raises(Mistake, match="there is no stream"):
        parse("[collector]\n", FILE)


@pytest.mark.parametrize("name", ["streams", "Stream", "strems", "feed"])
def test_streams_of_another_name_are_found(name: str) -> None:
    text = f"[collector]\n\n{STREAM.replace('stream', name)}"
    said = rf"line 3: there is no stream, and no key '{name}' here; did you mean \[\[stream\]\]\?"
    with pytest.raises(Mistake, match=said):
        parse(text, FILE)


def test_a_key_that_no_table_of_keys_has_is_a_bug() -> None:
    table = ConfigTable({}, FILE, "", (), known=frozenset({"a"}))
    assert "a" not in table
    with pytest.raises(AssertionError, match="b"):
        table.get("b", None)


def test_a_line_that_cannot_be_found_is_that_of_its_table() -> None:
    assert line_of("[a]\nb = 1\n[a.c]\n", ("a", "c", "d")) == 3
    assert line_of("x = 1\n", ("nowhere",)) == 1


def test_check_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--check", str(EXAMPLE)]) == 0
    assert "1 stream(s)" in capsys.readouterr().out
    bad = tmp_path / "bad.toml"
    bad.write_text(GOOD.replace("epsilon = 0.5", "epsilon = 99"))
    assert run(["serve", "--check", str(bad)]) == 2
    assert f"{bad}, line 10: epsilon is 99" in capsys.readouterr().err
    assert run(["serve", "--check", str(tmp_path / "none.toml")]) == 2
    assert list(tmp_path.iterdir()) == [bad]


def test_secrets_are_drawn_once_for_the_owner_only(tmp_path: Path) -> None:
    first = Secrets.load({}, tmp_path / "data", {})
    assert Secrets.load({}, tmp_path / "data", {}) == first
    assert len({first.master, first.enrolment, first.admin}) == 3
    for file in (tmp_path / "data").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "Secrets(...)" in repr(first)


def test_secrets_come_from_the_environment_or_from_files(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("token from a file\n")
    found = Secrets.load(
        {"admin": file}, tmp_path, {"LDPSTREAM_MASTER_SECRET": "from the environment"}
    )
    assert (found.master, found.admin) == (b"from the environment", b"token from a file")


@pytest.mark.parametrize(
    "content", [None, b"short", "not äscii but long enough".encode(), b"\xff" * 40]
)
def test_a_secret_that_cannot_be_used_is_refused(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(Mistake, match="token"):
        Secrets.load({"admin": file}, tmp_path, {})


@pytest.mark.parametrize("folder", ["/proc/none", "file", "file/within"])
def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(Mistake, match=r"secret: .*; make the store's folder writable"):
        Secrets.load({}, tmp_path / folder, {})
    with pytest.raises(Mistake, match="cannot be used as a store"):
        SqliteStore(tmp_path / folder / "collector.sqlite", SECRETS.master)


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="cannot be used as a store: it is not a file"):
        SqliteStore(tmp_path, SECRETS.master)
