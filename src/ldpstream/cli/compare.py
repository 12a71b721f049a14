"""`ldpstream compare`: compare all mechanisms on one stream and recommend one."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpstream.cli import options, queries, sources
from ldpstream.cli.grouped import grouped
from ldpstream.cli.output import console, print_rows, progress
from ldpstream.cli.running import (
    check_folder,
    command_line,
    mechanisms_named,
    numbers,
    result_cache,
    resumable,
    whole_numbers,
)

if TYPE_CHECKING:
    from ldpstream.lab.recommendation import Recommendation


@grouped
def command(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="folder for figures, CSVs and report.html")],
    source: sources.StreamOptions,
    labels: sources.Labels = None,
    users: sources.Users = None,
    timestamps: sources.Timestamps = None,
    epsilons: Annotated[str, typer.Option(help="privacy budgets, separated by commas")] = "0.5,1,2",
    windows: Annotated[str, typer.Option(help="window lengths, separated by commas")] = "10,20,40",
    mechanisms: Annotated[str, typer.Option(help="names, separated by commas; or all")] = "all",
    plugin: options.Plugin = None,
    repeats: options.Repeats = 3,
    oracle: options.Oracle = "auto",
    variance: options.Variance = "corrected",
    pool: options.Pool = False,
    mean: queries.Mean = None,
    distribution: queries.Distribution = None,
    persistence: options.Persistence = 0.0,
    selection: options.Selection = "roster",
    engine: options.Engine = None,
    no_cache: options.NoCache = False,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Run all mechanisms on one stream over a grid of epsilons and windows, and recommend one."""
    from ldpstream.extras import need
    from ldpstream.lab.comparison import Comparison
    from ldpstream.lab.engines import engine_named
    from ldpstream.lab.metrics import MRE_FLOOR
    from ldpstream.lab.provenance import made_with
    from ldpstream.lab.recommendation import recommend
    from ldpstream.lab.report.comparison import write_comparison
    from ldpstream.mechanisms.settings import RunOptions

    check_folder("--out", out)
    need("compare", "figures")
    query = queries.query_of(mean, distribution)
    with resumable(), engine_named(engine) as used, result_cache(unused=no_cache) as cache:
        comparison = Comparison(
            source.open(labels=labels, users=users, timestamps=timestamps, seed=seed),
            mechanisms_named(mechanisms),
            numbers("--epsilons", epsilons),
            whole_numbers("--windows", windows),
            repeats,
            RunOptions.read(
                oracle=oracle,
                variance=variance,
                pool=pool,
                query=query,
                persistence=persistence,
                selection=selection,
            ),
            seed,
        )
        experiment = comparison.experiment()
        with progress(f"comparing on {comparison.stream.name}", len(experiment.tasks())) as advance:
            results = experiment.run(engine=used, cache=cache, progress=advance)
        advice = recommend(results.rows)
        charts = comparison.charts(results.rows)
        report = write_comparison(
            comparison.stream,
            charts,
            results.summary(),
            advice,
            out,
            command_line(context),
            MRE_FLOOR * query.unit,
            comparison.releases(_shown(advice)),
        )
    ranking = [one.row() for one in advice.ranking]
    if as_json:
        said = {"recommendation": advice.chosen.mechanism, "because": advice.sentences()}
        made = {"report": str(report), "made_with": made_with()}
        print(json.dumps({**said, "ranking": ranking, **made}, indent=1))
        return
    print_rows(ranking, as_json=False)
    for sentence in advice.sentences():
        console(as_json=False).print(sentence)
    console(as_json=False).print(f"report: {report}")


def _shown(advice: Recommendation) -> list[str]:
    """Return the mechanisms whose releases are drawn: the one to use, and the next best."""
    from ldpstream.lab.central import CENTRAL

    names = dict.fromkeys(one.mechanism for one in (advice.chosen, *advice.ranking))
    return list(islice((name for name in names if name not in CENTRAL), 2))
