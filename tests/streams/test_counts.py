"""Files of histograms as people have them: tabs, semicolons, no header, a blank cell."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldpstream.errors import Mistake
from ldpstream.streams.counts import read_counts
from ldpstream.streams.notes import DataWarning
from ldpstream.streams.stream import CountsStream


def read(folder: Path, text: str) -> tuple[CountsStream, list[str]]:
    path, notes = folder / "counts.csv", list[str]()
    path.write_text(text)
    return read_counts(path, tell=notes.append), [note.removeprefix(f"{path}: ") for note in notes]


@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_cells_are_separated_by_commas_tabs_or_semicolons(tmp_path: Path, separator: str) -> None:
    stream, notes = read(tmp_path, "a,b\n1,2\n2,1\n".replace(",", separator))
    assert (stream.domain.labels, stream.table.tolist()) == (("a", "b"), [[1, 2], [2, 1]])
    assert notes == []


def test_without_a_header_labels_are_numbered(tmp_path: Path) -> None:
    stream, notes = read(tmp_path, "1,2\n2,1\n")
    assert (stream.domain.labels, stream.table.tolist()) == (("0", "1"), [[1, 2], [2, 1]])
    assert notes == ["no header, so labels are numbered 0 to 1"]


@pytest.mark.parametrize("header", ["0,1", "10,20"])
def test_numbers_can_be_labels(tmp_path: Path, header: str) -> None:
    stream, notes = read(tmp_path, f"{header}\n1,0\n0,1\n")
    assert (",".join(stream.domain.labels), stream.timestamps, notes) == (header, 2, [])


def test_a_blank_cell_is_what_its_row_lacks_and_is_told(tmp_path: Path) -> None:
    stream, notes = read(tmp_path, "a,b,c\n1,2,3\n, ,6\n4,,1\n")
    assert stream.table.tolist() == [[1, 2, 3], [0, 0, 6], [4, 1, 1]]
    said = "3 blank cell(s), filled with what the row lacks to 6 users; the first is row 3, column"
    assert notes == [f"{said} 'a'"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("1,2,3\n,,5\n", r"row 3 has 2 blank cell\(s\) and lacks 1 of 6 users; fill in all of"),
        ("1,2,3\n9,,1\n", r"row 3 has 1 blank cell\(s\) and lacks -4 of 6 users"),
        (",2,3\n,1,1\n", "every row has a blank cell"),
        ("1,x,3\n", "row 2, column 'b': 'x' is not a count"),
        (
            "1,2,3\n2,3,2\n",
            "row 3 sums to 7, row 2 to 6; .* if column 'a' is a time, leave it out$",
        ),
        ("2,2,3\n1,3,2\n", "give every timestamp the same number of users$"),
    ],
)
def test_what_cannot_be_filled_in_is_told(tmp_path: Path, rows: str, said: str) -> None:
    with pytest.raises(Mistake, match=said):
        read(tmp_path, "a,b,c\n" + rows)


def test_a_program_is_warned_at_its_own_line(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("a,b\n1,2\n,1\n")
    with pytest.warns(DataWarning, match=r"1 blank cell\(s\)") as caught:
        read_counts(str(path))
    assert caught[0].filename == __file__
