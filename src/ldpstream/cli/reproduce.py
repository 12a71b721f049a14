"""`ldpstream reproduce`: repeat the paper's evaluation, with its figures, table and claims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpstream.cli import options
from ldpstream.cli.output import console, print_rows, progress
from ldpstream.cli.running import check_folder, command_line, result_cache, resumable

if TYPE_CHECKING:
    from ldpstream.lab.reproduction.run import Reproduction


def command(
    context: typer.Context,
    experiment: Annotated[
        str,
        typer.Argument(
            help="all, table2, fig-epsilon, fig-window, fig-population, fig-fluctuation, fig-roc, "
            "fig-communication, fig-remark3 or analysis"
        ),
    ],
    out: Annotated[Path, typer.Option(help="folder for figures, CSVs and report.html")],
    repeats: options.Repeats = 3,
    engine: options.Engine = None,
    users: Annotated[
        int | None,
        typer.Option(help="users of the synthetic streams, instead of the paper's 200,000"),
    ] = None,
    timestamps: Annotated[
        int | None,
        typer.Option(help="timestamps of the synthetic streams, instead of the paper's 800"),
    ] = None,
    plugin: options.Plugin = None,
    no_cache: options.NoCache = False,
    seed: options.Seed = 0,
    markdown: Annotated[
        Path | None, typer.Option(help="write the report to this Markdown file as well")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Reproduce the paper's figures and table on Sin, Log, LNS and every prepared data set.

    `analysis` compares the formulas of its analysis with simulations. Mechanisms of a plug-in are
    drawn beside the paper's.
    """
    from ldpstream.extras import need
    from ldpstream.lab.engines import engine_named
    from ldpstream.lab.report.markdown import write_markdown
    from ldpstream.lab.report.reproduction import write_exhibits, write_report
    from ldpstream.lab.reproduction.run import ReproductionPlan, chosen
    from ldpstream.lab.reproduction.studies import MOST_TIMESTAMPS, StudyStreams
    from ldpstream.mechanisms.registry import BUILT_IN, names
    from ldpstream.streams.datasets.registry import prepared_streams

    check_folder("--out", out)
    need("reproduce", "figures")
    sizes = {"users": users, "timestamps": timestamps}
    given = {name: size for name, size in sizes.items() if size is not None}
    scope = StudyStreams(tuple(prepared_streams(MOST_TIMESTAMPS)), **given)
    own = tuple(name for name in names() if name not in BUILT_IN)
    plan = ReproductionPlan(chosen(experiment), scope, repeats, seed, own)
    named = command_line(context)
    with resumable(), engine_named(engine) as used, result_cache(unused=no_cache) as cache:
        with progress(f"reproducing {experiment}", plan.size()) as advance:
            result = plan.run(used, cache, advance)
        write_exhibits(result, out)
        report = write_report(result, out, named)
        if markdown is not None:
            write_markdown(result, out, named, markdown)
    _say(result, report, as_json=as_json)


def _say(result: Reproduction, report: Path, *, as_json: bool) -> None:
    from ldpstream.lab.provenance import made_with
    from ldpstream.lab.reproduction.analysis.exhibit import Analysis

    claims = [one.row() for one in result.judged()]
    if as_json:
        timings = [vars(timing) for timing in result.timings]
        told = {"claims": claims, "timings": timings, "report": str(report)}
        told["made_with"] = made_with()
        if isinstance(analysis := result.exhibits.get("analysis"), Analysis):
            told["analysis"] = [one.row() for one in analysis.comparisons]
        print(json.dumps(told, indent=1))
        return
    shown = ("verdict", "rests_on", "claim")
    print_rows([{name: claim[name] for name in shown} for claim in claims], as_json=False)
    console(as_json=False).print(f"report: {report}")
