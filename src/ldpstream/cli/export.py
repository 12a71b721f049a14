"""`ldpstream export`: write the releases of a stream to a file."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from ldpstream.cli import options
from ldpstream.cli.answers import Answer, malformed, read_answer, reads_answers
from ldpstream.errors import LdpStreamError, Mistake, Problem

if TYPE_CHECKING:
    from ldpstream.collector.store.contract import Archive, StoredRelease
    from ldpstream.collector.store.names import ReleasedNames

FORMATS = ("csv", "parquet", "arrow", "ndjson", "json")
PAGE_NUMBERS = 50_000
"""How many numbers to ask for in one request: they take some 20 bytes each."""


def command(
    stream: Annotated[str, typer.Option(help="the stream's name")],
    out: Annotated[Path, typer.Option(help="the file to write")],
    store: Annotated[
        str | None, typer.Option(help="a collector's store; the collector may be running")
    ] = None,
    collector: Annotated[str | None, typer.Option(help="or a collector's URL")] = None,
    since: Annotated[int, typer.Option(min=0, help="the first timestamp to export")] = 0,
    kind: Annotated[str, typer.Option("--format", help=", ".join(FORMATS))] = "csv",
    revised: Annotated[
        bool,
        typer.Option("--revised", help="with revised figures; of a store it needs --config"),
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(help="configuration of the store's collector: what it revises by"),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(help="a group of devices, such as country:de, in place of the whole fleet"),
    ] = None,
    token: options.ReadToken = "",
    as_json: options.Json = False,
) -> None:
    """Write the releases of a stream, with variance, interval and flags, to a file."""
    from ldpstream.collector.releases.formats import write
    from ldpstream.extras import need
    from ldpstream.lab.files import write_whole

    if kind not in FORMATS:
        raise Mistake(Problem.OPTION, option="--format", given=kind, expected=", ".join(FORMATS))
    if kind in ("arrow", "parquet"):
        need(f"--format {kind}", "data")
    if revised and collector is None and config is None:
        expected = "together with --collector, or with --config"
        raise Mistake(Problem.OPTION, option="--revised", given="given", expected=expected)
    if revised and group is not None:
        expected = "without --group: the history of groups is not revised"
        raise Mistake(Problem.OPTION, option="--revised", given="given", expected=expected)
    if store is not None and collector is None:
        names, rows = _from_store(store, stream, since, config if revised else None)
    elif collector is not None and store is None:
        names, rows = _from_collector(collector, stream, since, token, revised=revised)
    else:
        given = "not given" if store is None else "given together with --collector"
        raise Mistake(
            Problem.OPTION, option="--store", given=given, expected="either --store or --collector"
        )
    try:
        if group is not None:
            rows = _of_group(group, rows)
        data = write(kind, stream, names, rows)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if collector is None or isinstance(error, LdpStreamError):
            raise
        raise malformed(stream, "no list of releases") from None  # of a program that is none
    try:
        write_whole(out, data)
    except OSError as error:
        fix = "name a file that can be written"
        raise Mistake(Problem.DATA_FILE, file=out, what=error.strerror, fix=fix) from None
    if as_json:
        done = {"file": str(out), "stream": stream, "format": kind, "releases": len(rows)}
        print(json.dumps(done))
    else:
        print(f"{out}: {len(rows)} releases of {stream}")


def _of_group(group: str, rows: list[StoredRelease]) -> list[StoredRelease]:
    """Return the releases of a group, with null where a release does not show it."""
    from ldpstream.collector.store.groups import GROUPS, of_group, read_group, written

    parts = [one for row in rows for one in row.content.get(GROUPS, ())]
    known = {
        written((one["attribute"], value))
        for one in parts
        for value in (one["value"], *one.get("merged", ()))
    }
    if not known:
        expected = "a stream with attributes and groups of at least `least_group` devices"
        raise Mistake(Problem.OPTION, option="--group", given=repr(group), expected=expected)
    try:
        part = read_group(group, sorted(known))
    except Mistake as unknown:
        facts = {key: unknown.facts[key] for key in ("given", "expected")}
        raise Mistake(Problem.OPTION, option="--group", **facts) from None
    return [of_group(row, part) for row in rows]


def _from_store(
    store: str, stream: str, since: int, revised_by: Path | None
) -> tuple[ReleasedNames, list[StoredRelease]]:
    """Read all releases; with the configuration of the collector also their revised figures."""
    from ldpstream.collector.service.opening import master_beside, open_archive
    from ldpstream.collector.store.names import ReleasedNames

    with open_archive(store) as archive:
        names = ReleasedNames.read(archive.known_versions(stream))
        master = master_beside(store)
        chain = None if master is None else archive.chain(master)
        if chain is not None:
            archive.check_releases(chain, stream).refuse_damage()
        else:
            why = "LDPSTREAM_MASTER_SECRET is not set" if master is None else "it has none yet"
            print(f"ldpstream: the chain of releases was not checked: {why}", file=sys.stderr)
        rows = archive.releases(stream, since)
        return names, rows if revised_by is None else _revised(archive, revised_by, stream, rows)


def _revised(
    archive: Archive, file: Path, stream: str, rows: list[StoredRelease]
) -> list[StoredRelease]:
    """Add revised figures. Population, mechanism and suspicion are in the configuration alone."""
    from ldpstream.collector.config import load
    from ldpstream.collector.rounds.loading import settled
    from ldpstream.collector.rounds.revised import RevisedHistory
    from ldpstream.protocol.history import TermsHistory

    known = {one.name: one for one in load(file).streams}
    if stream not in known:
        raise Mistake(Problem.SOURCE_UNKNOWN, given=stream, known=", ".join(known))
    latest = TermsHistory.read(archive.versions(stream)).latest
    return RevisedHistory(settled(known[stream], latest), archive).of(rows)


@reads_answers("releases")
def _from_collector(
    url: str, stream: str, since: int, token: str, *, revised: bool
) -> tuple[ReleasedNames, list[StoredRelease]]:
    """Read all releases, page by page: a collector limits how many it returns at once."""
    from ldpstream.device.transport import HttpTransport
    from ldpstream.protocol.messages import RELEASES, path_of

    with closing(HttpTransport()) as transport:
        path = path_of(RELEASES, stream=quote(stream, safe=""))
        first = f"{path}?since={since}&limit=1&format=json"
        most = max(PAGE_NUMBERS // _names(_ask(transport, url, first, token)).most, 1)
        rows: list[StoredRelease] = []
        while True:
            page = f"{path}?since={since}&limit={most}&format=json&revised={str(revised).lower()}"
            told = _ask(transport, url, page, token)
            if not told["releases"]:
                return _names(told), rows
            rows += map(_release, told["releases"])
            if rows[-1].t < since:
                raise malformed(path, f"of t={rows[-1].t}, and from t={since} on was asked for")
            since = rows[-1].t + 1


def _names(told: dict[str, Any]) -> ReleasedNames:
    """Return the names of the figures: a stream whose terms never changed has one list of them."""
    from ldpstream.collector.store.names import ReleasedNames

    return ReleasedNames(tuple(map(tuple, told.get("labels_of_versions", [told["labels"]]))))


def _ask(transport: Any, url: str, path: str, token: str) -> Any:
    from ldpstream.device.answers import refusal_in
    from ldpstream.device.exchange import Request
    from ldpstream.protocol.messages import TokenProof

    headers = TokenProof(token).headers if token else {}
    response = transport.send(url, Request("GET", path, headers, patience=60))
    if response.status != 200:
        raise refusal_in(response, "to show releases")
    told = read_answer(path, response.body)
    labels = told.get("labels_of_versions", [told["labels"]])
    lists = (told["releases"], labels, *(labels if isinstance(labels, list) else ()))
    if not all(isinstance(one, list) for one in lists):
        raise malformed(path, "no list of releases")
    return told


def _release(answer: Any) -> StoredRelease:
    from ldpstream.collector.store.contract import StoredRelease

    if not isinstance(answer, Answer) or not isinstance(answer["t"], int):
        raise malformed("releases", "a list of something else")
    known = {name: answer[name] for name in ("at_ms", "asked", "received", "missed")}
    content = {name: part for name, part in answer.items() if name not in known}
    return StoredRelease(t=answer["t"], content=content, **known)
