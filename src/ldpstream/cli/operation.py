"""`ldpstream status`, `reload`, `pause` and `resume`: how a running collector is operated."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from ldpstream.cli import options
from ldpstream.cli.admin_client import AdminClient
from ldpstream.cli.administration import File, Stream, Url
from ldpstream.cli.answers import malformed, reads_answers
from ldpstream.cli.output import print_rows
from ldpstream.errors import Mistake, Problem

STARVES = 3
"""Exit status: a stream waits for reports, or gets too few of them."""
BROKEN = 4
"""Exit status: a stream is failing, or behind."""
REFUSED = 2
SHOWN = ("stream", "state", "t", "last_release", "why")


@reads_answers("status")
def status(
    file: File,
    stream: Annotated[
        str | None, typer.Option(help="only this stream; default: all streams of the collector")
    ] = None,
    url: Url = "",
    as_json: options.Json = False,
) -> None:
    """Show the state of each stream in one word.

    The exit status is 0 if all are live, paused or retired; 3 if one waits for its first report, is
    thin or silent; 4 if one is behind or failing.
    """
    from ldpstream.collector.service.condition import StreamState

    told = AdminClient.of(file, url).get("status")["streams"]
    if not isinstance(told, dict) or not all(isinstance(row, dict) for row in told.values()):
        raise malformed("status", "without a table of each stream")
    if stream is not None and stream not in told:
        raise Mistake(Problem.STREAM_UNKNOWN, given=stream, known=", ".join(told))
    rows = [row for name, row in told.items() if stream in (None, name)]
    shown = [{key: row[key] for key in SHOWN} for row in rows]
    unknown = [str(row["state"]) for row in rows if row["state"] not in tuple(StreamState)]
    if unknown:
        raise malformed("status", f"of a stream that is {unknown[0]!r}")
    print_rows(rows if as_json else shown, as_json=as_json)
    states = [StreamState(row["state"]) for row in rows]
    if any(state.is_broken for state in states):
        raise typer.Exit(BROKEN)
    if not all(state.is_intended for state in states):
        raise typer.Exit(STARVES)


@reads_answers("reload")
def reload(file: File, url: Url = "", as_json: options.Json = False) -> None:
    """Make a running collector reread its file; print what changes, and what cannot."""
    told = AdminClient.of(file, url).post("reload")
    print(json.dumps(told) if as_json else "\n".join(_lines(told)))
    if told["refused"]:
        raise typer.Exit(REFUSED)


@reads_answers("a stream")
def pause(file: File, stream: Stream, url: Url = "", as_json: options.Json = False) -> None:
    """Pause a stream: no more rounds are opened until it is resumed; its devices are told."""
    _print_state(AdminClient.of(file, url).post(f"streams/{stream}/pause"), as_json)


@reads_answers("a stream")
def resume(file: File, stream: Stream, url: Url = "", as_json: options.Json = False) -> None:
    """Resume a stream that was paused."""
    _print_state(AdminClient.of(file, url).post(f"streams/{stream}/resume"), as_json)


def _print_state(told: dict[str, Any], as_json: bool) -> None:
    print(json.dumps(told) if as_json else f"{told['stream']}: {told['state']} ({told['why']})")


def _lines(told: dict[str, Any]) -> list[str]:
    if told["refused"]:
        return [f"refused, and nothing is changed: {why}" for why in told["refused"]]
    lines = [f"changed: {line}" for line in told["changes"]]
    lines += [f"not changed: {line}" for line in told["stays"]]
    return lines or ["nothing changes"]
