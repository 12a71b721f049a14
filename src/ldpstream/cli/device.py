"""`ldpstream device`: what a device's file tells its owner."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpstream.cli import options
from ldpstream.cli.output import Row, print_rows

if TYPE_CHECKING:
    from ldpstream.device import Status

app = typer.Typer(help="A device of the device SDK: look at its file.", no_args_is_help=True)

LAST_REPORTS = 10


@app.callback()
def device() -> None:
    """A device of the device SDK."""


@app.command()
def status(
    file: Annotated[Path, typer.Argument(help="the device's file")],
    as_json: options.Json = False,
) -> None:
    """Show what is left of the budget, the last reports, and what was refused."""
    from ldpstream.device import read_status

    found = read_status(file)
    if as_json:
        print(json.dumps(_object(found), indent=1))
        return
    overview = _object(found)
    entries, refusals = overview.pop("entries"), overview.pop("refusals")
    for name, value in overview.items():
        print(f"{name}: {'-' if value is None else value}")
    for rows in (entries[-LAST_REPORTS:], refusals):
        if rows:
            print_rows(rows, as_json=False)


def _object(found: Status) -> Row:
    terms = found.terms
    return {
        "device": found.number,
        "collector": found.url,
        "stream": terms and terms.stream,
        "pin": terms and terms.pin,
        "epsilon_nano": terms and terms.epsilon_nano,
        "window": terms and terms.window,
        "t": found.t,
        "left_nano": found.left_nano,
        "full_in_seconds": None if found.full_in_ms is None else found.full_in_ms / 1000,
        "entries": [
            {
                "t": entry.t,
                "round": entry.round or "(unknown past)",
                "spent_nano": entry.nano,
                "at": _time(entry.at_ms),
            }
            for entry in found.entries
        ],
        "refusals": [
            {
                "code": one.code,
                "times": one.times,
                "last": _time(one.last_ms),
                "detail": one.detail,
            }
            for one in found.refusals
        ],
    }


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")
