"""`ldpstream plan`: predict the cost and the error of a stream before there is one."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpstream.cli import options, sources
from ldpstream.cli.grouped import grouped
from ldpstream.cli.output import Row, console, print_rows, progress
from ldpstream.cli.running import mechanisms_named, refuse_beside
from ldpstream.durations import EXAMPLES, milliseconds
from ldpstream.errors import Mistake, Problem

if TYPE_CHECKING:
    from ldpstream.lab.planning.plan import AnyOracle, Plan
    from ldpstream.lab.planning.subject import Subject
    from ldpstream.lab.planning.target import Judge
    from ldpstream.mechanisms.settings import Settings
    from ldpstream.protocol.attributes import Attributes
    from ldpstream.streams import stream as streams

GUESSED_USERS = 100_000
GUESSED_EPSILON = "1"
"""Where the search starts for the one that was omitted."""
SHARE = re.compile(r":(0?\.\d+|0|1)$")
"""What `simulate` and `fleet` have after a value of an attribute."""


@grouped
def command(
    source: sources.StreamOptions,
    users: Annotated[
        int | None, typer.Option(help="size of the fleet; default: the least for --target-error")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="number of labels, or a file with one label per line; with --data: top:K or a file"
        ),
    ] = None,
    number_range: Annotated[
        str | None,
        typer.Option(
            "--range",
            help="LOW:HIGH of a number, to plan for its mean; labels of a sample are then equal "
            "steps from LOW to HIGH, in order",
        ),
    ] = None,
    quantiles: Annotated[
        bool,
        typer.Option(
            "--quantiles", help="with --range: plan for its distribution, with quantiles and mean"
        ),
    ] = False,
    vocabulary: Annotated[
        bool, typer.Option("--vocabulary", help="plan for any text, which nobody has to list")
    ] = False,
    epsilon: Annotated[
        str | None,
        typer.Option(help="privacy budget of any window; default: the least for --target-error"),
    ] = None,
    window: options.Window = 20,
    interval: Annotated[str, typer.Option(help="length of a timestamp: 30s, 1min, 1h")] = "1min",
    target_error: Annotated[
        str | None,
        typer.Option(
            help="root mean squared error of a bin to reach, such as 0.01; or 5%, relative to the "
            "mean bin (for a number: to the range); or both, separated by a comma"
        ),
    ] = None,
    mechanism: Annotated[
        str,
        typer.Option(
            help="names, separated by commas; or all; or usual, the paper's seven and lpf"
        ),
    ] = "usual",
    oracle: Annotated[
        str,
        typer.Option(
            help="auto; or those to try with each mechanism: names, separated by commas, or all"
        ),
    ] = "auto",
    timestamps: Annotated[
        int | None,
        typer.Option(help="how many to plan for; default: 5 windows, or all of a sample"),
    ] = None,
    repeats: Annotated[int, typer.Option(help="number of runs on a sample to average")] = 3,
    attribute: Annotated[
        list[str] | None,
        typer.Option(
            help="a public attribute of devices and its values, such as country=de,fr; may be "
            "given several times"
        ),
    ] = None,
    plugin: options.Plugin = None,
    seed: options.Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="file to write the stream.toml to, which must not be there yet"),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Predict the error and cost of each mechanism, recommend one, and write its stream.toml.

    Predictions are for a stream that does not change. Give a sample of your own (--stream, --counts
    or --data) to have mechanisms simulated on it instead.
    """
    from ldpstream.collector.config.table import MOST_WHOLE
    from ldpstream.lab.planning.plan import PlanRequest, make_plan
    from ldpstream.lab.planning.target import read_goal

    if out is not None and out.exists():
        expected = "a file that is not there yet: plan replaces none"
        raise Mistake(Problem.OPTION, option="--out", given=out, expected=expected)
    _at_least(1, {"--users": users, "--timestamps": timestamps, "--repeats": repeats})
    if users is not None and users > MOST_WHOLE:
        expected = f"{MOST_WHOLE} or less, as a collector's file takes it"
        raise Mistake(Problem.OPTION, option="--users", given=users, expected=expected)
    _at_least(0, {"--seed": seed})
    if quantiles and target_error is not None:
        # The error of p99 differs by chance more than by a few users: a search would find noise.
        given, expected = "with --quantiles", "--users and --epsilon, and compare plans"
        raise Mistake(Problem.OPTION, option="--target-error", given=given, expected=expected)
    if vocabulary:
        others = {
            "--labels": labels is not None,
            "--range": number_range is not None,
            "--quantiles": quantiles,
            "--attribute": bool(attribute),
            "--target-error": target_error is not None,
            "a sample": source.given,
            "--mechanism": mechanism not in ("usual", "lpf"),
            "--oracle": oracle not in ("auto", "hadamard"),
        }
        refuse_beside("--vocabulary", others)
        _plan_texts(users, epsilon, window, _interval(interval), out, as_json=as_json)
        return
    of_data, planned = (None, labels) if source.data is None else (labels, None)
    sample: streams.Stream | None = None
    if source.given:
        sample = source.open(labels=of_data, timestamps=timestamps, seed=seed)
    if sample is not None and users is None and target_error is None:
        users = sample.users
    attributes = _attributes(attribute or [])
    subject = _subject(planned, number_range, sample, quantiles=quantiles)
    settings, find = _settings(subject, users, epsilon, window, searching=target_error is not None)
    horizon = sample.timestamps if sample else timestamps or _horizon(subject, window)
    judge = _judge(subject, sample, horizon, repeats, seed)
    if settings.users > judge.most_users and quantiles:
        expected = f"{judge.most_users} or less, which can be simulated"
        raise Mistake(Problem.OPTION, option="--users", given=users, expected=expected)
    request = PlanRequest(
        settings,
        _interval(interval),
        horizon / window,
        _mechanisms(mechanism, subject, attributes),
        _oracles(oracle, subject),
        # Simulating every oracle takes long, and chance may decide; theory chooses well enough.
        compare_oracles=sample is None,
        typical=subject.typical,
        goal=None if target_error is None else read_goal(target_error, subject.typical),
        find=find,
    )
    with progress("planning", request.size()) as advance:
        plan = make_plan(request, judge, advance)
    text = _stream_file(plan, subject, attributes, out or Path("stream.toml"))
    if out is not None:
        _write(out, text)
    warning = None if attributes is None else attributes.warning(plan.settings.users)
    _say(plan, text, warning, out, as_json=as_json)


def _attributes(written: list[str]) -> Attributes | None:
    """Read attributes, or refuse them in one line; None if there are none."""
    from ldpstream.protocol.attributes import Attribute, Attributes

    if not written:
        return None
    parts = [one.partition("=") for one in written]
    values = [tuple(value.strip() for value in each.split(",")) for _, _, each in parts]
    names = [name.strip() for name, _, _ in parts]
    found = Attributes(tuple(map(Attribute, names, values)))
    fault = found.fault
    if any(all(map(SHARE.search, each)) for each in values):
        fault = "shares are for simulate and fleet; values would get them as part of their names"
    if fault is not None:
        expected = f"NAME=VALUE,..., such as country=de,fr: {fault}"
        given = " ".join(written)
        raise Mistake(Problem.OPTION, option="--attribute", given=given, expected=expected)
    return found


def _plan_texts(
    users: int | None,
    epsilon: str | None,
    window: int,
    interval_ms: int,
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    """Plan for texts, which have one mechanism and one oracle; nothing is simulated."""
    from ldpstream.collector.config import parse
    from ldpstream.lab.planning.texts import TextPlan
    from ldpstream.privacy.epsilon import Epsilon

    if users is None or epsilon is None:
        missing = "--users" if users is None else "--epsilon"
        raise Mistake(Problem.OPTION, option=missing, given="missing", expected="it")
    if users < window:
        raise Mistake(Problem.TOO_FEW_USERS, users=users, window=window, needed=window)
    plan = TextPlan(users, Epsilon.of(epsilon), window, interval_ms)
    text = plan.stream_file()
    parse(text, out or Path("stream.toml"))
    if out is not None:
        _write(out, text)
    if as_json:
        print(json.dumps(plan.to_json(), indent=1))
        return
    _print_plan(plan.rows(), plan.sentences(), out)


def _interval(text: str) -> int:
    length_ms = milliseconds(text)
    if not length_ms:
        expected = f"a duration like {EXAMPLES}"
        raise Mistake(Problem.OPTION, option="--interval", given=repr(text), expected=expected)
    return length_ms


def _at_least(least: int, numbers: dict[str, int | None]) -> None:
    for option, given in numbers.items():
        if given is not None and given < least:
            raise Mistake(Problem.OPTION, option=option, given=given, expected=f"{least} or more")


def _subject(
    labels: str | None,
    number_range: str | None,
    sample: streams.Stream | None,
    *,
    quantiles: bool,
) -> Subject:
    """Return what to plan for; if a sample has a range, its labels are the levels, in order."""
    from ldpstream.lab.planning.subject import Subject

    given = [
        name
        for name, one in (("--labels", labels), ("--range", number_range), ("a sample", sample))
        if one is not None
    ]
    if quantiles and number_range is None:
        expected = "--range=LOW:HIGH of the numbers with it"
        raise Mistake(Problem.OPTION, option="--quantiles", given="alone", expected=expected)
    if number_range is not None and sample is not None and labels is None:
        return Subject.of_range(number_range, len(sample.domain), quantiles=quantiles)
    if len(given) != 1:
        raise Mistake(
            Problem.OPTION,
            option="the subject",
            given=" and ".join(given) or "missing",
            expected="--labels, --range or a sample (--stream, --counts, --data); or the last two",
        )
    if sample is not None:
        return Subject.of_domain(sample.domain)
    if number_range:
        return Subject.of_range(number_range, quantiles=quantiles)
    return Subject.of_labels(labels or "")


def _horizon(subject: Subject, window: int) -> int:
    """Return how many timestamps to plan for: some windows, and fewer of them for quantiles."""
    from ldpstream.lab.planning.predict import HORIZON
    from ldpstream.lab.planning.reference import MOST_TIMESTAMPS

    return min(HORIZON * window, MOST_TIMESTAMPS) if subject.binned else HORIZON * window


def _judge(
    subject: Subject, sample: streams.Stream | None, timestamps: int, repeats: int, seed: int
) -> Judge:
    from ldpstream.lab.planning.predict import Prediction
    from ldpstream.lab.planning.reference import on_reference
    from ldpstream.lab.planning.sample import Sample

    if sample is not None:
        return Sample(sample, repeats, seed)
    if subject.binned:
        return on_reference(subject.values, timestamps, repeats, seed)
    return Prediction(timestamps, seed)


def _settings(
    subject: Subject, users: int | None, epsilon: str | None, window: int, *, searching: bool
) -> tuple[Settings, str | None]:
    """Return the settings, and which of them is a guess that the search is to replace."""
    from ldpstream.mechanisms.settings import Settings
    from ldpstream.privacy.epsilon import Epsilon

    missing = [name for name, one in (("users", users), ("epsilon", epsilon)) if one is None]
    if len(missing) > searching:
        raise Mistake(
            Problem.OPTION,
            option=f"--{missing[-1]}",
            given="missing",
            expected="it, or a --target-error to find it for"
            if len(missing) == 1
            else "it, or --users and a --target-error",
        )
    settings = Settings(
        labels=subject.values,
        users=GUESSED_USERS if users is None else users,
        epsilon=Epsilon.of(GUESSED_EPSILON if epsilon is None else epsilon),
        window=window,
        query=subject.query,
    )
    return settings, missing[0] if missing else None


def _mechanisms(text: str, subject: Subject, attributes: Attributes | None) -> tuple[str, ...]:
    from ldpstream.lab.planning.plan import MECHANISMS, one_report_has_all
    from ldpstream.mechanisms.registry import takes_slots

    named = MECHANISMS if text == "usual" else mechanisms_named(text)
    if attributes is not None:
        slots = tuple(filter(takes_slots, named))
        if text not in ("usual", "all") and slots != named:
            expected = "those that devices report to in slots, lpf or lpu, with --attribute"
            raise Mistake(Problem.OPTION, option="--mechanism", given=repr(text), expected=expected)
        return slots
    if not subject.binned:
        return named
    fit = tuple(name for name in named if one_report_has_all(name))
    if text not in ("usual", "all") and fit != named:
        expected = "those whose reports have all of epsilon, such as lpf, lpu, lpa, lpd"
        raise Mistake(Problem.OPTION, option="--mechanism", given=repr(text), expected=expected)
    return fit


def _oracles(text: str, subject: Subject) -> tuple[AnyOracle, ...] | None:
    from ldpstream.lab.planning.plan import oracles_for

    if text == "auto":
        return None
    if text == "all":
        return tuple(oracles_for(subject.query))
    return tuple(subject.query.oracle(name.strip()) for name in text.split(","))


def _stream_file(plan: Plan, subject: Subject, attributes: Attributes | None, path: Path) -> str:
    """Return a file that the collector accepts; raise its own error if it does not."""
    from ldpstream.collector.config import parse
    from ldpstream.lab.planning.stream_file import StreamFile

    text = StreamFile(
        subject,
        plan.settings,
        plan.interval_ms,
        plan.advice.chosen,
        plan.advice.sentences(),
        attributes,
    ).text()
    parse(text, path)
    return text


def _write(out: Path, text: str) -> None:
    from ldpstream.lab.files import write_whole

    try:
        write_whole(out, text)
    except OSError as error:
        raise Mistake(
            Problem.DATA_FILE, file=out, what=error.strerror, fix="name a writable file"
        ) from None


def _say(plan: Plan, text: str, warning: str | None, out: Path | None, *, as_json: bool) -> None:
    chosen, target = plan.advice.chosen, plan.advice.target
    if as_json:
        said = {
            "recommendation": chosen.mechanism,
            "oracle": chosen.oracle,
            "because": plan.advice.sentences(),
            "users": plan.settings.users,
            "epsilon": float(plan.settings.epsilon),
            "window": plan.settings.window,
            "labels": plan.settings.labels,
            "timestamps": round(plan.advice.windows * plan.settings.window),
            "target": target and target.row(),
            "shuffled": plan.shuffled.row(),
            "outcomes": plan.rows(),
            "stream_toml": text,
            "warnings": [] if warning is None else [warning],
        }
        print(json.dumps(said, indent=1))
        return
    warnings = [] if warning is None else [f"Warning: {warning}."]
    told = [*plan.advice.sentences(), plan.shuffled.sentence(), *warnings]
    _print_plan(plan.table(), told, out)


def _print_plan(rows: Sequence[Row], sentences: Sequence[str], out: Path | None) -> None:
    print_rows(rows, as_json=False)
    for sentence in sentences:
        console(as_json=False).print(sentence, highlight=False)
    if out is not None:
        console(as_json=False).print(f"wrote {out}; check it: ldpstream serve --check {out}")
