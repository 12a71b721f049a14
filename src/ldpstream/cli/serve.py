"""`ldpstream serve`: run a collector for the streams of one configuration file."""

from __future__ import annotations

import json
import logging
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpstream.cli import options
from ldpstream.errors import Mistake, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldpstream.collector.config import Config
    from ldpstream.collector.rounds.store_comparison import StoreComparison
    from ldpstream.collector.service.stream_service import StreamService

UNSERVED = (
    "stream %s is in the store but not in the file: it is not served, and its devices hear that it"
    " is unknown; to tell them that it has ended, keep it in the file with retired = true"
)


def command(
    file: Annotated[Path, typer.Argument(help="configuration file, TOML (docs/collector.md)")],
    check: Annotated[bool, typer.Option("--check", help="check the file and exit")] = False,
    against: Annotated[
        str | None,
        typer.Option(help="with --check: also compare the file with this store, changing nothing"),
    ] = None,
    plugin: options.Plugin = None,
    log: Annotated[
        str, typer.Option(help="log level on standard error: debug, info, warning or error")
    ] = "warning",
    as_json: Annotated[
        bool, typer.Option("--json", help="print one JSON object once it listens")
    ] = False,
) -> None:
    """Run a collector: collect reports from devices and release their statistics, until stopped."""
    hangups: list[int] = []
    if not check:
        signal.signal(signal.SIGHUP, lambda number, frame: hangups.append(number))
    from ldpstream.collector.config import load

    config = load(file)
    if against is not None:
        if not check:
            expected = "--check beside it"
            raise Mistake(Problem.OPTION, option="--against", given=against, expected=expected)
        raise typer.Exit(_compare(config, file, against, as_json=as_json))
    if check:
        raise typer.Exit(_check(config, file, as_json=as_json))
    from ldpstream.collector.api.server import listen, serve, url_of
    from ldpstream.collector.json_logging import LEVELS, set_up
    from ldpstream.collector.service.opening import load_secrets, token_places
    from ldpstream.collector.service.service import Service
    from ldpstream.collector.service.warm_up import warm_up

    if log not in LEVELS:
        raise Mistake(Problem.OPTION, option="--log", given=log, expected=", ".join(LEVELS))
    set_up(log)
    listening = listen(config)  # before secrets are generated: a refused start leaves none behind
    secrets = load_secrets(config)
    warm_up(config.streams)  # before the service, which starts the clock of a new stream
    service = Service(config, secrets)
    unserved = service.unserved
    for name in unserved:
        logging.getLogger(__name__).warning(UNSERVED, name, extra={"stream": name})
    if not as_json:
        print("\n".join(map(_in_words, service.streams.values())))

    def ready() -> None:
        url, tokens = url_of(listening), token_places(config)
        if as_json:
            streams = [_facts(stream) for stream in service.streams.values()]
            told = {"url": url, "streams": streams, "page": f"{url}/", "tokens": tokens}
            print(json.dumps(told | {"unserved": unserved}), flush=True)
        else:
            print(f"page: {url}/")
            print("\n".join(f"{kind} token: in {place}" for kind, place in tokens.items()))
            print(f"listening on {url}", flush=True)
        for number in hangups[:1]:  # came before there was anything to reload
            os.kill(os.getpid(), number)

    serve(service, listening, ready)
    if not as_json:
        print("stopped", flush=True)


def _check(config: Config, file: Path, *, as_json: bool) -> int:
    """Print what `serve` would refuse in the file and what it names; 0 if nothing, else 2."""
    from ldpstream.collector.api.preflight import refusals

    refused = list(refusals(config))
    names = [stream.name for stream in config.streams]
    warnings = [f"{one.name}: {why}" for one in config.streams for why in one.warnings]
    if as_json:
        told = {"file": str(file), "streams": names, "refused": refused, "warnings": warnings}
        print(json.dumps(told))
        return 2 if refused else 0
    for why in warnings:
        print(f"warning: {why}")
    for why in refused:
        print(f"refused: {why}")
    if not refused:
        print(f"{file}: {len(names)} stream(s), nothing wrong")
    return 2 if refused else 0


def _compare(config: Config, file: Path, store: str, *, as_json: bool) -> int:
    """Print what a file changes in a store; return 0 if it would be served, else 2."""
    from ldpstream.collector.rounds.store_comparison import ALWAYS_FREE, compare
    from ldpstream.collector.service.opening import open_archive
    from ldpstream.machine_clock import SystemClock

    with open_archive(store) as archive:
        now_ms = SystemClock().wall_ms()
        found = [compare(stream, archive, now_ms) for stream in config.streams]
        unserved = sorted(archive.terms().keys() - {stream.name for stream in config.streams})
    if as_json:
        streams = [one.to_json() for one in found]
        told = {"file": str(file), "store": store, "streams": streams, "unserved": unserved}
        print(json.dumps(told | {"served": all(one.refusal is None for one in found)}))
    else:
        print("\n".join(line for one in found for line in _told(one)))
        for name in unserved:
            print(f"{name}: in the store, but not in the file: it will not be served")
        print(f"always free: {ALWAYS_FREE}")
    return 2 if any(one.refusal for one in found) else 0


def _told(one: StoreComparison) -> Iterator[str]:
    """Yield the lines about one stream."""
    name, source = one.config.name, one.config.source
    if one.latest is None:
        yield f"{name}: not in the store: it will be created"
        return
    changed = "" if one.differences or one.refusal else ", nothing changes"
    yield f"{name}: version {one.latest.version} in the store{changed}"
    for change in one.differences:
        what = {
            "free": "free" + (f" ({change.why})" if change.why else ""),
            "successor": "needs a successor",
            "impossible": f"impossible: {change.why}",
        }[change.verdict]
        place = f"{source.file}, line {source.line(change.key)}"
        yield f"  {place}: {change.key} = {change.stored} -> {change.given}: {what}"
    yield from (f"  {remark}" for remark in one.remarks)
    if one.successor is not None and (succeeds := one.successor.succeeds) is not None:
        yield (
            f"  version {succeeds.version} would be in force from about t={succeeds.from_t}, and"
            f" reports under version {one.latest.version} counted until t={succeeds.until_t}"
        )
    if one.refusal is not None:
        yield f"  refused: {one.refusal}"
    if one.to_write is not None:
        yield "  to continue under the same name, add below the keys of this stream:"
        yield from (f"    {line}" for line in one.to_write.splitlines())


def _in_words(stream: StreamService) -> str:
    from ldpstream.numeric.range import BinnedRange

    terms, names = stream.terms, stream.terms.names
    values = f"{len(names)} labels" if len(names) > 1 else f"the {', '.join(names)} of numbers"
    if isinstance(terms.values, BinnedRange):
        values = f"the distribution of numbers in {terms.values.bins} bins"
    if stream.config.vocabulary is not None:
        values = f"any text, in {len(terms.values):,} buckets"
    return (
        f"{terms.stream}: {stream.config.mechanism} with {terms.oracle}, epsilon"
        f" {terms.epsilon} in {terms.window} timestamps of {terms.interval_ms / 1000:g} s,"
        f" {values}, {stream.config.selection}\n  pin {terms.pin}"
    )


def _facts(stream: StreamService) -> dict[str, object]:
    """Return what describes a stream, above all its pin."""
    return {
        "stream": stream.terms.stream,
        "pin": stream.terms.pin,
        "terms": stream.terms.to_json(),
        "mechanism": stream.config.mechanism,
        "selection": stream.config.selection,
    }
