"""Check that a live collector with real devices errs as the simulation says, for each selection.

    .venv/bin/python benchmarks/fleet.py [--quick] [--selection KIND ...] [--json] [--write]

For each mechanism a real `ldpstream serve` runs three streams with the same parameters, with slots,
open and roster selection, and fleets of real devices answer it over loopback: on the roster each
with a connection of its own, else through a gateway. Then the same mechanism is simulated on the
same stream many times, with the same selection. If all is right, the live run is one more draw of
the same experiment: its error must lie where those of simulated runs lie.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.fleet.fleet import Fleet, FleetOutcome, FleetPlan
from ldpstream.fleet.folders import memory_folder
from ldpstream.lab.metrics import MRE_FLOOR
from ldpstream.lab.simulation import Simulation, simulate
from ldpstream.streams.stream import CountsStream
from ldpstream.streams.synthetic import sin

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.serving import TOKEN, serving

PAGE = Path(__file__).parents[1] / "docs" / "fleet.md"
KINDS = ("slots", "open", "roster")
MECHANISMS = ("lpu", "lpf")
EPSILON = 1.0
WINDOW = 10
COVERED = 0.95
STARTING_SECONDS = 30
"""What the start of a collector may take on a busy machine."""
ENROLLING_PER_SECOND = 40
"""Enrolments on all streams together; on a roster each is a commit."""

STREAM = """
[[stream]]
name = "{kind}"
labels = ["0", "1"]
epsilon = {epsilon}
window = {window}
interval = "{interval_ms}ms"
start = {start}
mechanism = "{mechanism}"
oracle = "grr"
selection = "{kind}"
population = {devices}
"""


@dataclass(frozen=True)
class Setting:
    """The size of the experiment."""

    devices: int
    timestamps: int
    interval: float
    repeats: int
    kinds: tuple[str, ...] = KINDS

    def source(self) -> CountsStream:
        return sin(users=self.devices, timestamps=self.timestamps, a=0.2, b=0.05, h=0.4)


@dataclass(frozen=True)
class Row:
    """One live run beside simulated ones; ranges hold 95 % of these, relative to their mean."""

    mechanism: str
    selection: str
    first_t: int
    """The first timestamp that reached a device, with the first values of the stream."""
    reports: float
    """Reports received for a release, on average."""
    simulated_reports: float
    mse: float
    simulated_mse: float
    mse_ratio: float
    mse_range: tuple[float, float]
    mre: float
    simulated_mre: float
    mre_ratio: float
    mre_range: tuple[float, float]

    @property
    def agrees(self) -> bool:
        pairs = ((self.mse_ratio, self.mse_range), (self.mre_ratio, self.mre_range))
        return all(low <= ratio <= high for ratio, (low, high) in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small, to see that it runs")
    parser.add_argument("--devices", type=int)
    parser.add_argument("--timestamps", type=int)
    parser.add_argument("--interval", type=float, help="seconds of a timestamp")
    parser.add_argument("--selection", action="append", choices=KINDS, help="default: all of them")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    usual = Setting(100, 20, 1.0, 200) if options.quick else Setting(2000, 100, 2.0, 1000)
    setting = Setting(
        options.devices or usual.devices,
        options.timestamps or usual.timestamps,
        options.interval or usual.interval,
        usual.repeats,
        tuple(options.selection or KINDS),
    )
    rows = [row for mechanism in MECHANISMS for row in compare(mechanism, setting)]
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        print(table(rows))
    if options.write:
        PAGE.write_text(page(rows, setting))


def compare(mechanism: str, setting: Setting) -> list[Row]:
    enrolling = timedelta(
        seconds=STARTING_SECONDS + len(setting.kinds) * setting.devices / ENROLLING_PER_SECOND
    )
    start = datetime.now(UTC) + enrolling
    streams = [
        STREAM.format(
            kind=kind,
            epsilon=EPSILON,
            window=WINDOW,
            interval_ms=round(1000 * setting.interval),
            start=start.isoformat(timespec="milliseconds"),
            mechanism=mechanism,
            devices=setting.devices,
        )
        for kind in setting.kinds
    ]
    with (
        tempfile.TemporaryDirectory(dir=memory_folder()) as folder,
        serving(Path(folder), *streams) as url,
    ):
        outcomes = asyncio.run(live(url, setting, start))
    return [
        beside(mechanism, kind, outcome, simulated(mechanism, kind, setting))
        for kind, outcome in zip(setting.kinds, outcomes, strict=True)
    ]


def simulated(mechanism: str, kind: str, setting: Setting) -> Simulation:
    return simulate(
        setting.source(),
        mechanism,
        epsilon=EPSILON,
        window=WINDOW,
        oracle="grr",
        selection=kind,
        repeats=setting.repeats,
    )


async def live(url: str, setting: Setting, start: datetime) -> list[FleetOutcome]:
    """All fleets at once, from before the first timestamp to after the last."""
    fleets = [
        asyncio.create_task(take_part(url, kind, setting, start, seed))
        for seed, kind in enumerate(setting.kinds)
    ]
    return list(await asyncio.gather(*fleets))


async def take_part(
    url: str, kind: str, setting: Setting, start: datetime, seed: int
) -> FleetOutcome:
    end = start + timedelta(seconds=(setting.timestamps + 2) * setting.interval)
    plan = FleetPlan(
        url=url,
        stream=kind,
        token=TOKEN,
        source=setting.source(),
        devices=setting.devices,
        seconds=(end - datetime.now(UTC)).total_seconds(),
        gateway=kind != "roster",
        seed=seed,
    )

    def in_time(stage: str, done: int, of: int) -> None:
        if of and datetime.now(UTC) >= start:
            raise SystemExit(f"{done} of {of} devices had enrolled when the first timestamp began")

    return await Fleet(plan, in_time, lambda one: told(kind, one.t, one.received)).run()


def told(kind: str, t: int, received: int) -> None:
    if t % 10 == 0:
        print(f"{kind} t={t} received {received}", file=sys.stderr, flush=True)


def beside(mechanism: str, kind: str, outcome: FleetOutcome, simulated: Simulation) -> Row:
    judged = outcome.judged[: simulated.timestamps]
    first, last = judged[0].t, judged[-1].t
    truth = np.array([one.truth for one in judged])
    same = simulated.runs[0].truth
    if last - first + 1 != len(same) or not np.allclose(truth, same):
        raise SystemExit(f"{mechanism}, {kind}: not every release of {first} to {last} was read")
    values = np.array([one.values for one in judged])
    mse, mses = _mse(values, truth), [_mse(run.released, run.truth) for run in simulated.runs]
    mre, mres = _mre(values, truth), [_mre(run.released, run.truth) for run in simulated.runs]
    return Row(
        mechanism,
        kind,
        first,
        float(np.mean([one.received for one in judged])),
        simulated.mean("cfpu") * simulated.settings.users,
        mse,
        float(np.mean(mses)),
        mse / float(np.mean(mses)),
        _range(mses),
        mre,
        float(np.mean(mres)),
        mre / float(np.mean(mres)),
        _range(mres),
    )


def _mse(values: Floats, truth: Floats) -> float:
    return float(np.mean((values - truth) ** 2))


def _mre(values: Floats, truth: Floats) -> float:
    return float(np.mean(np.abs(values - truth) / np.maximum(truth, MRE_FLOOR)))


def _range(figures: list[float]) -> tuple[float, float]:
    """Return the range of 95 % of the simulated runs, relative to their mean."""
    tail = (1 - COVERED) / 2
    low, high = np.quantile(figures, [tail, 1 - tail]) / np.mean(figures)
    return float(low), float(high)


def table(rows: list[Row]) -> str:
    head = (
        "| mechanism | selection | from t | reports | simulated | MSE | simulated | ratio |"
        " 95 % of runs | MRE | simulated | ratio | 95 % of runs |\n"
        "|---|---|---:|---:|---:|---:|---:|---:|---|---:|---:|---:|---|\n"
    )
    return head + "\n".join(
        f"| {row.mechanism} | {row.selection} | {row.first_t} | {row.reports:.1f}"
        f" | {row.simulated_reports:.1f}"
        f" | {row.mse:.5f} | {row.simulated_mse:.5f} | {row.mse_ratio:.2f}"
        f" | {_shown(row.mse_range)}"
        f" | {row.mre:.4f} | {row.simulated_mre:.4f} | {row.mre_ratio:.2f}"
        f" | {_shown(row.mre_range)} |"
        for row in rows
    )


def _shown(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.2f} to {ends[1]:.2f}"


def command(setting: Setting) -> str:
    flags = f"--devices {setting.devices} --timestamps {setting.timestamps}"
    flags += f" --interval {setting.interval:g}"
    if setting.kinds != KINDS:
        flags += "".join(f" --selection {kind}" for kind in setting.kinds)
    return f".venv/bin/python benchmarks/fleet.py {flags} --write"


def page(rows: list[Row], setting: Setting) -> str:
    agreeing = sum(row.agrees for row in rows)
    return f"""# A live fleet against the simulation

Made by `{command(setting)}` on {os.cpu_count()} cores \
({platform.machine()}, Python {platform.python_version()}).

A real `ldpstream serve`, and {setting.devices:,} real devices on each stream, over loopback: \
{setting.timestamps} timestamps of
{setting.interval:g} s, epsilon {EPSILON:g}, w = {WINDOW}, GRR, the sine stream with two labels. \
On the roster every device has a
connection of its own; else a gateway passes on batches. Beside it the same mechanism on the same
stream in `simulate` with the same selection, {setting.repeats:,} runs. If the live system \
does what the
simulation does, its run is one more draw of the same experiment: its error, as a ratio to the mean
of the simulated ones, lies in the range of the middle 95 % of them in 19 of 20 cases. Here:
{agreeing} of {len(rows)} rows, in both errors.

{table(rows)}

"from t" is the first timestamp that reached any device: it has the stream's first values, and the
figures begin with it. "reports" are those received for a release, on average.
`tests/fleet/test_fleet.py` holds a small fleet to the same.
"""


if __name__ == "__main__":
    main()
