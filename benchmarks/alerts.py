"""How well alerts find events: by how sure it is that a threshold is passed, or by the estimate.

    .venv/bin/python benchmarks/alerts.py [--repeats N] [--json] [--write]

Events are those of the paper: a label's true frequency is above 0.75 of its own range. Two scores
rank the moments of one and the same run of LPF: how far the estimate lies above the threshold (the
raw score), and how many standard errors the interval's centre does (the probability that it is
really above, put on another scale). LPA's estimate, with the
same choice of oracle, stands beside them. An area of 1 is perfect, 0.5 is chance.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.lab.files import write_whole
from ldpstream.lab.metrics import ROC_RATES, auc, events, roc
from ldpstream.lab.simulation import Run, run, settings_for
from ldpstream.mechanisms.registry import build
from ldpstream.refine.intervals import QUANTILE
from ldpstream.streams.stream import Stream
from ldpstream.streams.synthetic import STREAMS

PAGE = Path(__file__).parents[1] / "docs" / "alerts.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
COMMAND = ".venv/bin/python benchmarks/alerts.py --write"
EPSILON, WINDOW = 1.0, 20
FALSE_ALARMS = 0.05
EVENTFUL = ("sin", "log", "lns", "step", "zipf")
"""Of the built-in streams; constant has no events, and meter's 1025 labels take many minutes."""
TIE = 0.0005
"""Areas that differ by less are shown as the same."""
Floats = NDArray[np.float64]


def released(stream: Stream, mechanism: str, seed: int) -> Run:
    settings = settings_for(stream, epsilon=EPSILON, window=WINDOW)
    return run(stream, build(mechanism, settings), np.random.default_rng(seed))


def sureness(one: Run) -> tuple[NDArray[np.bool_], Floats]:
    """Events, and how many standard errors above its threshold each label is."""
    centre = (one.low + one.high) / 2
    happened, above = events(one.truth, centre)
    moving = one.truth.max(axis=0) > one.truth.min(axis=0)
    errors = (one.high - one.low)[:, moving].ravel() / (2 * QUANTILE)
    return happened, above / np.maximum(errors, 1e-12)


def found(happened: NDArray[np.bool_], scores: Floats) -> float:
    """The share of events found at the false-positive rate of the table."""
    curve = roc(happened, scores)
    place = int(np.searchsorted(ROC_RATES, FALSE_ALARMS - 1e-9))
    return float("nan") if curve is None else float(curve[place])


def measured(name: str, repeats: int) -> dict[str, Any]:
    """Means over repeats of both scores, on the same runs."""
    columns: dict[str, list[float]] = {}
    for seed in range(repeats):
        stream = STREAMS[name]()
        ours = released(stream, "lpf", seed)
        ranked = {
            "lpa": events(*_both(released(stream, "lpa", seed))),
            "raw": events(*_both(ours)),
            "sure": sureness(ours),
        }
        for key, score in ranked.items():
            columns.setdefault(f"{key}_auc", []).append(auc(*score))
            columns.setdefault(f"{key}_found", []).append(found(*score))
    gain = np.array(columns["sure_auc"]) - np.array(columns["raw_auc"])
    error = float(np.std(gain, ddof=1) / np.sqrt(repeats)) if repeats > 1 else float("nan")
    means = {key: float(np.mean(numbers)) for key, numbers in columns.items()}
    return {"stream": name, **means, "gain": float(np.mean(gain)), "gain_error": error}


def _both(one: Run) -> tuple[Floats, Floats]:
    return one.truth, one.released


def verdict(rows: list[dict[str, Any]]) -> str:
    """What the table says, in a paragraph."""
    worse = [row["stream"] for row in rows if row["gain"] < -TIE]
    better = [row["stream"] for row in rows if row["gain"] > TIE]
    mean = float(np.mean([row["gain"] for row in rows]))
    behind = [row["stream"] for row in rows if row["sure_auc"] < row["lpa_auc"] - TIE]
    return (
        f"The probability ranks better on {_names(better)}, worse on {_names(worse)}, and the same"
        f" (within {TIE}) elsewhere; on average the area changes by {mean:+.4f}. Behind LPA's raw"
        f" estimate it is on {_names(behind)}."
    )


def _names(names: list[str]) -> str:
    return ", ".join(names) or "none"


def page(rows: list[dict[str, Any]], repeats: int) -> str:
    head = (
        "| stream | LPA, raw | LPF, raw | LPF, probability | gain | found, raw | found, prob. |\n"
        "|---|---|---|---|---|---|---|\n"
    )
    lines = [
        f"| {row['stream']} | {row['lpa_auc']:.4f} | {row['raw_auc']:.4f} | {row['sure_auc']:.4f}"
        f" | {row['gain']:+.4f} ± {row['gain_error']:.4f}"
        f" | {row['raw_found']:.3f} | {row['sure_found']:.3f} |"
        for row in rows
    ]
    about = (
        f"`{COMMAND}`: epsilon {EPSILON:g}, w = {WINDOW}, means of {repeats} runs; the gain is that"
        " of the probability over the raw score on the same runs, with its standard error. *Found*"
        f" is the share of events found at {FALSE_ALARMS:.0%} false alarms.\n\n"
    )
    return about + head + "\n".join(lines) + "\n\n" + verdict(rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--streams", nargs="*", default=list(EVENTFUL))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="put the table into docs/alerts.md")
    given = parser.parse_args()
    rows = [measured(name, given.repeats) for name in given.streams]
    if given.json:
        print(json.dumps(rows, indent=1))
    else:
        print(page(rows, given.repeats))
    if given.write:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        after = rest.partition(END)[2]
        text = f"{before}{BEGIN}\n{page(rows, given.repeats)}{END}{after}"
        write_whole(PAGE, text)


if __name__ == "__main__":
    main()
