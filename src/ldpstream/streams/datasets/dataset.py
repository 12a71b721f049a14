"""A data set, and how it becomes a stream on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ldpstream.errors import Mistake, Problem
from ldpstream.extras import need
from ldpstream.streams.events import FORMAT, EventsStream
from ldpstream.streams.faults import bad_file
from ldpstream.streams.home import fingerprint, home, whole_folder

if TYPE_CHECKING:
    from ldpstream.streams.table import Events, Watch


@dataclass(frozen=True)
class StreamSize:
    """The size of a stream."""

    users: int
    timestamps: int
    labels: int


@dataclass(frozen=True)
class DataSet:
    """A public set of events: what it is, where to get it, how to read it.

    `find` turns the path that a user gives into the files to read, `events` makes a table of these.
    `events` imports Polars only when it is called: a prepared stream does not need it.
    """

    name: str
    what: str
    where: str
    licence: str
    find: Callable[[Path], list[Path]]
    events: Callable[[Sequence[Path]], Events]
    paper: StreamSize | None = None
    """Its size in the paper, whose labels do not count "none"."""
    version: int = 1
    """Raised when `events` reads the same files differently."""
    default: Callable[[], Path | None] = lambda: None
    """Where the files are if the user does not say."""

    @property
    def folder(self) -> Path:
        return home() / "sets" / self.name

    def open(self) -> EventsStream | None:
        """Return the prepared stream, if there is one."""
        try:
            return EventsStream.open(self.folder)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def prepare(
        self, source: Path | None, watch: Watch = lambda what, done, total: None
    ) -> EventsStream:
        """Prepare a stream from the files as downloaded, unless it was made from the same files."""
        need(f"preparing {self.name}", "data")
        from ldpstream.streams.reading import readable
        from ldpstream.streams.table import write_events

        source = source or self.default()
        if source is None:
            raise Mistake(Problem.DATA_SET_NOT_PREPARED, name=self.name, where=self.where)
        if not source.exists():
            raise bad_file(source, "no such file or folder", f"get it from {self.where}")
        watch("looking at the files", 0, 0)
        files = self.find(source)
        key = fingerprint(files, FORMAT, self.name, self.version)
        known = self.open()
        if known is not None and known.key == key:
            return known
        with readable(source), whole_folder(self.folder) as fresh:
            write_events(self.events(files), fresh, name=self.name, key=key, watch=watch)
        return EventsStream.open(self.folder)


def named_files(*names: str) -> Callable[[Path], list[Path]]:
    """Find files by their official names, from their folder or from the path of one of them."""

    def find(source: Path) -> list[Path]:
        folder = source if source.is_dir() else source.parent
        for name in names:
            if not (folder / name).is_file():
                raise bad_file(folder, f"there is no {name}", "give the folder of the download")
        return [folder / name for name in names]

    return find


def one_file(*endings: str) -> Callable[[Path], list[Path]]:
    """Find the file with one of these endings: the path given, or the only one in that folder."""

    def find(source: Path) -> list[Path]:
        files = sorted(source.iterdir()) if source.is_dir() else [source]
        fitting = [path for path in files if path.name.endswith(endings)]
        if len(fitting) != 1:
            what = f"{len(fitting)} files here end in {' or '.join(endings)}"
            raise bad_file(source, what, "give the one file as it was downloaded")
        return fitting

    return find


def unreadable_rows(file: Path) -> Callable[[str], Mistake]:
    """Return what makes the error for a row that the official file would not have."""

    def blame(column: str) -> Mistake:
        what = f"a row has no {column} that can be read"
        return bad_file(file, what, "give the file as it was downloaded, whole and unchanged")

    return blame
