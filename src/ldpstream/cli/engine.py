"""`ldpstream engine`: count the report log of collectors whose configuration has `ingest`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpstream.cli import options
from ldpstream.cli.output import print_rows
from ldpstream.errors import LdpStreamError, Mistake, Problem

if TYPE_CHECKING:
    from ldpstream.collector.report_log.contract import LogSettings, ReportLog
    from ldpstream.collector.report_log.counts import LogCounts
    from ldpstream.collector.store.database import Database
    from ldpstream.engines.recount import Recount

PATIENCE_SECONDS = 60.0
"""How long an engine waits for a log that does not answer; no device waits for the engine."""
PARTS_A_CORE = 2
"""Ranges into which a batch is divided, for each core of the cluster."""

app = typer.Typer(
    help="Count the report log of collectors whose configuration has `ingest`.",
    no_args_is_help=True,
)

Config = Annotated[Path, typer.Option("--config", help="the collectors' configuration file, TOML")]
Again = Annotated[
    bool,
    typer.Option(
        "--recount", help="recount the rounds that the log still holds, and compare with the store"
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="with --recount: print JSON instead of a table")
]


@app.command("local")
def local_command(
    config: Config,
    recount: Again = False,
    plugin: options.Plugin = None,
    as_json: AsJson = False,
) -> None:
    """Count in one process, until stopped."""
    _check_json(recount=recount, as_json=as_json)
    from ldpstream.engines import local

    with _opened(config) as place:
        if recount:
            from ldpstream.engines.recount import recount_here

            _compare(place, recount_here(place.log), as_json=as_json)
            return
        stop = threading.Event()
        _on_signals(stop)
        print(f"counting {', '.join(place.streams)}", flush=True)
        local.run(place.log, place.counts, place.streams, stop)
        print("stopped", flush=True)


@app.command("spark")
def spark_command(
    config: Config,
    master: Annotated[str, typer.Option(help="Spark's master, such as spark://host:7077")],
    checkpoint: Annotated[
        str, typer.Option(help="folder or URL where the job keeps its checkpoint")
    ] = "",
    recount: Again = False,
    plugin: options.Plugin = None,
    as_json: AsJson = False,
) -> None:
    """Count on a Spark cluster, until stopped."""
    _check_json(recount=recount, as_json=as_json)
    if not (recount or checkpoint):
        expected = "a folder that outlives the job"
        raise Mistake(Problem.OPTION, option="--checkpoint", given="missing", expected=expected)
    try:
        from ldpstream.engines.batch_size import Heartbeat
        from ldpstream.engines.spark.job import Job, recount_on
        from ldpstream.engines.spark.session import session
        from ldpstream.engines.spark.source import Options
    except ModuleNotFoundError as error:
        if error.name not in ("pyspark", "pyarrow"):
            raise
        raise Mistake(Problem.EXTRA_MISSING, what="counting on Spark", extra="spark") from None

    with _opened(config) as place:
        spark = session(master)
        try:
            cores = spark.sparkContext.defaultParallelism
            parts = PARTS_A_CORE * cores
            options = Options(place.settings, place.database, place.streams, parts)
            if recount:
                _compare(place, recount_on(spark, options), as_json=as_json)
                return
            stop = threading.Event()
            _on_signals(stop)
            query = Job(spark, options, place.log, place.counts).start(checkpoint)
            print(f"counting {', '.join(place.streams)}", flush=True)
            heartbeat = Heartbeat(place.counts, place.streams)
            while query.isActive and not stop.wait(0.5):
                heartbeat.beat()
            if (failure := query.exception()) is not None:
                what = str(failure).splitlines()[0]
                raise LdpStreamError(Problem.ENGINE_ENDED, what=what)
            query.stop()
            print("stopped", flush=True)
        finally:
            spark.stop()


def _check_json(*, recount: bool, as_json: bool) -> None:
    """Refuse --json where nothing is printed as JSON: an engine that counts only says so."""
    if as_json and not recount:
        raise Mistake(Problem.OPTION, option="--json", given="given", expected="--recount with it")


@dataclass(frozen=True)
class _Place:
    """The log and the counts that a configuration names, opened."""

    settings: LogSettings
    database: Database
    streams: tuple[str, ...]
    log: ReportLog
    counts: LogCounts


@contextmanager
def _opened(file: Path) -> Iterator[_Place]:
    from ldpstream.collector.config import load

    config = load(file)
    if config.ingest is None or config.database is None:
        raise Mistake(Problem.LOG_MISSING, file=file)
    settings = replace(config.ingest, patience_seconds=PATIENCE_SECONDS)
    try:
        from ldpstream.collector.report_log.counts import LogCounts
        from ldpstream.collector.report_log.jetstream import JetStreamLog
    except ModuleNotFoundError as error:
        extra = {"psycopg": "postgres", "nats": "nats"}.get(error.name or "")
        if extra is None:
            raise
        raise Mistake(Problem.EXTRA_MISSING, what="an engine", extra=extra) from None
    with ExitStack() as opening:
        log = opening.enter_context(closing(JetStreamLog(settings)))
        counts = opening.enter_context(closing(LogCounts(config.database)))
        streams = tuple(stream.name for stream in config.streams)
        yield _Place(settings, config.database, streams, log, counts)


def _compare(place: _Place, recount: Recount, *, as_json: bool) -> None:
    from ldpstream.collector.store.postgres.archive import open_archive
    from ldpstream.engines.recount import compare

    with open_archive(place.database) as store:
        rows = list(compare(place.log, place.counts, store, place.streams, recount))
    if rows or as_json:
        print_rows(rows, as_json=as_json)
    else:
        print("the log holds no complete round that has been counted")
    if not all(row["equal"] for row in rows):
        raise typer.Exit(1)


def _on_signals(stop: threading.Event) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
