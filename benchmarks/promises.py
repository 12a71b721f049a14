"""Compare event level, w-event, lifetime and user level on one stream.

.venv/bin/python benchmarks/promises.py [--repeats N] [--json] [--write]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.lab.promises.comparison import Case, PrivacyUnit, PromiseCost, compare

from sections import table, write_section

COMMAND = ".venv/bin/python benchmarks/promises.py --write"
DOCS = Path(__file__).parents[1] / "docs"
PAGE, FIGURE = DOCS / "promises.md", DOCS / "images" / "promises.png"
COLOURS = dict(zip(PrivacyUnit, ("#D55E00", "#0072B2", "#009E73", "#CC79A7"), strict=True))
AFTER = 4
"""The figure and the last column cover this many horizons."""


def rows(found: list[PromiseCost], horizon: int) -> list[dict[str, object]]:
    return [
        {
            "promise": one.promise,
            "how": one.how,
            "mse": one.mse,
            "error": one.error,
            "spent": one.spent(horizon),
            "spent_later": one.spent(AFTER * horizon),
        }
        for one in found
    ]


def page(case: Case, found: list[PromiseCost], repeats: int) -> str:
    stream, horizon = case.stream, case.stream.timestamps
    cells = [
        [
            f"{one.promise}, {one.how}",
            f"{one.mse:.3g} ± {one.error:.1g}",
            *(_spent(one.spent(t)) for t in (horizon, AFTER * horizon)),
        ]
        for one in found
    ]
    head = ["promise, kept by", "MSE", f"epsilon of {horizon} timestamps", f"of {AFTER * horizon}"]
    return f"""Made by `{COMMAND}`, {repeats} repeats; ± is the standard error.

A sine of {stream.users:,} users who keep their values as long as they can, {horizon} timestamps,
two labels; epsilon {case.epsilon:g}, w = {case.window}; permanent answers have epsilon
{case.permanent:g} each. The last columns are what all reports of one person cost together.

{table(head, cells)}

![error by promise, and epsilon of a person over time](images/promises.png)"""


def _spent(epsilon: float | None) -> str:
    return "nothing is promised" if epsilon is None else f"{epsilon:g}"


def draw(case: Case, found: list[PromiseCost]) -> None:
    """Draw the error of each promise, and what a person pays over time."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (errors, costs) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    names = [f"{one.promise}: {one.how}" for one in found]
    colours = [COLOURS[one.promise] for one in found]
    errors.barh(names, [one.mse for one in found], color=colours)
    errors.set(xscale="log", xlabel="mean squared error of a share")
    errors.invert_yaxis()
    times = np.arange(1, AFTER * case.stream.timestamps + 1)
    for promise, one in {one.promise: one for one in found}.items():
        spent = [one.spent(int(t)) for t in times]
        known = [np.nan if e is None else e for e in spent]
        costs.plot(times, known, color=COLOURS[promise], label=promise.value)
    costs.axvline(case.stream.timestamps, color="#8a8a8a", linewidth=0.8, linestyle=":")
    costs.set(yscale="log", xlabel="timestamps", ylabel="epsilon of all reports of a person")
    costs.legend(frameon=False, loc="lower right")
    for axes in (errors, costs):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(FIGURE, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="put figures into docs/promises.md")
    options = parser.parse_args()
    case = Case.usual()
    found = list(compare(case, options.repeats))
    text = page(case, found, options.repeats)
    found_rows = rows(found, case.stream.timestamps)
    print(json.dumps(found_rows, indent=1) if options.json else text)
    if options.write:
        draw(case, found)
        write_section(PAGE, "promises", text)


if __name__ == "__main__":
    main()
