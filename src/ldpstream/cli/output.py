"""The output of commands: tables, JSON and progress bars."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ldpstream.lab.numbers import readable

Row = dict[str, Any]
MOST_COLUMNS = 10_000
"""Characters in a line of a table, at most."""


def print_rows(rows: Sequence[Row], *, as_json: bool) -> None:
    """Print a JSON object for each row, or a table below the values that all rows share.

    A table has no figures that no row has, such as quantiles where there are none.
    """
    if as_json:
        print(json.dumps(list(rows), indent=1))
        return
    if not rows:
        return
    known = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    rows = [{name: row[name] for name in known} for row in rows]
    if len(rows) == 1:
        console(as_json=False).print(_vertical(rows[0]))
        return
    shared = [name for name in rows[0] if len({row[name] for row in rows}) == 1]
    columns = [name for name in rows[0] if name not in shared]
    told = [name for name in shared if rows[0][name] is not None]
    title = "  ".join(f"{name} {_cell(rows[0][name])}" for name in told)
    if title:  # no title of the table, which may be narrower and would break it
        console(as_json=False).print(title, style="italic", highlight=False)
    table = Table(header_style="bold", box=SIMPLE_HEAD)
    for name in columns:
        cells = [_cell(row[name]) for row in rows]
        longest = max(len(word) for text in (name, *cells) for word in text.split() or [""])
        justify: Literal["left", "right"] = "left" if isinstance(rows[0][name], str) else "right"
        table.add_column(name, justify=justify, min_width=longest)
    for row in rows:
        table.add_row(*(_cell(row[name]) for name in columns))
    _print_whole(table)


def _print_whole(table: Table) -> None:
    """Print a table without cutting any word or number, even if it is wider than the screen."""
    out = console(as_json=False)
    endless = out.options.update(max_width=MOST_COLUMNS)  # a measurement ends at the given width
    out.width = max(out.width, Measurement.get(out, endless, table).minimum)
    out.print(table)


def _vertical(row: Row) -> Table:
    """Lay out a single row with its names down the side: across, it would be cut off."""
    table = Table(show_header=False, box=None)
    for name, value in row.items():
        table.add_row(name, _cell(value))
    return table


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error, so that standard output has the table or JSON alone."""
    with _bar() as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.update(task, advance=done)


@contextmanager
def stages(label: str, *, lines: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar for work in stages: the stage, what is done, and the total (0: unknown).

    With `lines` each new stage is a line where there is no terminal for a bar.
    """
    with _bar() as bar:
        task = bar.add_task(label, total=None)
        last = ""

        def show(stage: str, done: int, total: int) -> None:
            nonlocal last
            text = f"{label}: {stage}"
            if lines and bar.disable and stage != last:
                print(f"ldpstream: {text} ({done} of {total} done)", file=sys.stderr, flush=True)
            last = stage
            bar.update(task, description=text, completed=done, total=total or None)

        yield show


def note(text: str) -> None:
    """Print a note about the data to standard error."""
    print(f"ldpstream: note: {text}", file=sys.stderr)


def _bar() -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )


def console(*, as_json: bool) -> Console:
    """Return the console for plain text, kept apart from JSON; 140 wide without a terminal."""
    plain = partial(Console, stderr=as_json, markup=False, emoji=False)
    out = plain()
    return out if out.is_terminal else plain(width=140)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return readable(value, digits=4)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_cell(one)}" for name, one in value.items()) or "none"
    return "" if value is None else str(value)
