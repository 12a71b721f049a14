"""The studies, run small: all panels are there, shared runs are made once, CSVs read back."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

import pytest

from ldpstream.errors import Mistake
from ldpstream.lab.cache import ResultCache
from ldpstream.lab.engines import InProcess
from ldpstream.lab.figures.charts import Chart
from ldpstream.lab.reproduction.run import NAMES, Reproduction, ReproductionPlan, chosen
from ldpstream.lab.reproduction.studies import FIGURES, MONITORS, SEVEN, TRUSTED, StudyStreams
from ldpstream.lab.reproduction.table2 import Table2
from ldpstream.lab.tasks import Figures, Task
from ldpstream.streams.stream import Stream
from ldpstream.streams.synthetic import zipf
from tests.lab.ideal import exhibits
from tests.lab.reading_back import read_back

SMALL = StudyStreams(
    (zipf(users=1000, timestamps=30, labels=5),), users=1000, timestamps=30
)  # a quarter of the users still fills two windows of 50


class Counting(InProcess):
    """Remembers what it ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def run(
        self, tasks: Sequence[Task], streams: Mapping[str, Stream]
    ) -> Generator[tuple[Task, Figures], None, None]:
        self.ran += [task.key for task in tasks]
        yield from super().run(tasks, streams)


@pytest.fixture(scope="module")
def engine() -> Counting:
    return Counting()


@pytest.fixture(scope="module")
def small(engine: Counting, tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    plan = ReproductionPlan(chosen("all"), SMALL, repeats=2)
    done: list[int] = []
    with ResultCache(tmp_path_factory.mktemp("cache") / "results.db") as cache:
        result = plan.run(engine, cache, done.append)
    assert sum(done) == plan.size()  # or the progress bar would lie
    return result


def test_shared_runs_are_made_once(small: Reproduction, engine: Counting) -> None:
    assert len(engine.ran) == len(set(engine.ran))
    assert len(engine.ran) < sum(timing.runs for timing in small.timings)


def test_every_name_has_an_exhibit_and_a_time(small: Reproduction) -> None:
    assert tuple(small.exhibits) == NAMES
    assert [timing.name for timing in small.timings] == list(NAMES)


@pytest.mark.parametrize("name", FIGURES)
def test_every_point_is_there_with_all_repeats(small: Reproduction, name: str) -> None:
    exhibit = small.exhibits[name]
    assert isinstance(exhibit, Chart)
    study = FIGURES[name](SMALL)
    assert [panel.title for panel in exhibit.panels] == [sweep.title for sweep in study.sweeps]
    for panel in exhibit.panels:
        assert set(panel.mechanisms) == set(study.mechanisms)
        assert {point.repeats for point in panel.points} == {2}
        for mechanism in panel.mechanisms:
            assert len(panel.line(mechanism)) == (101 if name == "fig-roc" else 5)


def test_the_studies_are_the_papers(small: Reproduction) -> None:
    epsilon, roc = FIGURES["fig-epsilon"](SMALL), FIGURES["fig-roc"](SMALL)
    assert epsilon.mechanisms == SEVEN + TRUSTED
    assert roc.mechanisms == MONITORS
    assert {sweep.windows for sweep in epsilon.sweeps} == {(20,)}
    assert {sweep.windows for sweep in roc.sweeps} == {(50,)}
    full = FIGURES["fig-population"](StudyStreams())
    sizes = [stream.users for stream in full.sweeps[0].streams]
    assert sizes == [50_000, 100_000, 200_000, 400_000, 800_000]


def test_table2_stands_beside_the_paper(small: Reproduction) -> None:
    table = small.exhibits["table2"]
    assert isinstance(table, Table2)
    assert len(table.cells) == 3 * 4 * 7
    assert {cell.stream for cell in table.printed()} == {"sin", "log"}
    assert len(table.printed()) == 3 * 2 * 7


def test_a_csv_reads_back(small: Reproduction) -> None:
    for exhibit in (*small.exhibits.values(), *exhibits().values()):
        assert read_back(exhibit, exhibit.to_csv()) == exhibit


def test_claims_can_be_judged_from_csvs_alone(small: Reproduction, tmp_path: Path) -> None:
    before = [one.verdict for one in small.judged()]
    read = {name: read_back(exhibit, exhibit.to_csv()) for name, exhibit in small.exhibits.items()}
    again = Reproduction(read, small.timings, small.streams, small.repeats)
    assert [one.verdict for one in again.judged()] == before


def test_an_unknown_study_is_a_mistake() -> None:
    with pytest.raises(Mistake, match=r"'fig-9'; give one of: all, table2"):
        chosen("fig-9")
