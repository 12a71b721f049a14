"""Draw what an epsilon and a window promise, and what they cost in accuracy.

.venv/bin/python benchmarks/choosing.py [--write]
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from ldpstream.lab.planning.predict import HORIZON, Prediction
from ldpstream.mechanisms.settings import Settings
from ldpstream.privacy.epsilon import Epsilon
from sections import table, write_section

COMMAND = ".venv/bin/python benchmarks/choosing.py --write"
DOCS = Path(__file__).parents[1] / "docs"
PAGE, FIGURE = DOCS / "choosing.md", DOCS / "images" / "choosing.png"
EPSILONS = (0.25, 0.5, 1, 2, 4)
WINDOWS = (5, 10, 20, 50, 100)
FLEETS = (1_000, 10_000, 100_000)
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#8a8a8a")
EPSILON, WINDOW, LABELS = 1, 20, 5
"""What is held fixed while the other one moves."""


def sureness(epsilon: float) -> float:
    """How sure of one of two values somebody can become who held them for equally likely."""
    return 1 / (1 + math.exp(-epsilon))


def error(users: int, epsilon: float, window: int, mechanism: str = "lpf") -> float:
    """Predict the root mean squared error of a share, in the last window."""
    settings = Settings(labels=LABELS, users=users, epsilon=Epsilon.of(epsilon), window=window)
    return Prediction(timestamps=HORIZON * window)(mechanism, settings).settled


def page(by_epsilon: dict[str, list[float]], by_window: dict[str, list[float]]) -> str:
    odds = [
        [f"{epsilon:g}", f"{math.exp(epsilon):.3g}", f"{sureness(epsilon):.0%}", *cells]
        for epsilon, *cells in zip(EPSILONS, *map(shown, by_epsilon.values()), strict=True)
    ]
    windows = [
        [f"{window}", *cells]
        for window, *cells in zip(WINDOWS, *map(shown, by_window.values()), strict=True)
    ]
    return f"""Made by `{COMMAND}`. Errors are root mean squared errors of one share of {LABELS},
predicted for a stream that does not change, after {HORIZON - 1} windows: LPF's best case, since all
that it remembers is still true. LPU remembers nothing: its error is what one timestamp alone tells.

![What epsilon promises, and what epsilon and w cost](images/choosing.png)

With w = {WINDOW}:

{table(["epsilon", "odds change by at most", "sure of one of two, at most", *by_epsilon], odds)}

With epsilon {EPSILON}:

{table(["w", *by_window], windows)}"""


def shown(errors: list[float]) -> list[str]:
    return [f"{one:.2g}" for one in errors]


def draw(by_epsilon: dict[str, list[float]], by_window: dict[str, list[float]]) -> None:
    """Draw sureness by epsilon, and the error by epsilon and by w."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (sure, epsilons, windows) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    many = [one / 50 for one in range(251)]
    sure.plot(many, [100 * sureness(one) for one in many], color="#0072B2")
    sure.axhline(50, color="#8a8a8a", linewidth=0.8, linestyle=":")
    sure.set(xlabel="epsilon", ylabel="sure of one of two values, at most (%)", ylim=(45, 100))
    _draw_errors(epsilons, EPSILONS, by_epsilon, f"epsilon, with w = {WINDOW}")
    _draw_errors(windows, WINDOWS, by_window, f"w, with epsilon {EPSILON}")
    lines = windows.get_legend_handles_labels()
    figure.legend(*lines, loc="outside lower center", ncols=len(lines[1]), frameon=False)
    for axes in (sure, epsilons, windows):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(FIGURE, dpi=120)


def _draw_errors(axes: Any, at: tuple[float, ...], by: dict[str, list[float]], name: str) -> None:
    for (line, errors), colour in zip(by.items(), COLOURS, strict=False):
        axes.plot(at, errors, marker="o", color=colour, label=line)
    axes.set(xscale="log", yscale="log", xlabel=name, ylabel="error of a share")
    axes.set_xticks(at, [f"{one:g}" for one in at])
    axes.minorticks_off()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put figures into docs/choosing.md")
    options = parser.parse_args()
    by_epsilon = {
        f"LPF, {n:,} devices": [error(n, one, WINDOW) for one in EPSILONS] for n in FLEETS
    }
    by_window = {f"LPF, {n:,} devices": [error(n, EPSILON, one) for one in WINDOWS] for n in FLEETS}
    by_window[f"LPU, {FLEETS[-1]:,} devices"] = [
        error(FLEETS[-1], EPSILON, one, "lpu") for one in WINDOWS
    ]
    text = page(by_epsilon, by_window)
    print(text)
    if options.write:
        draw(by_epsilon, by_window)
        write_section(PAGE, "choosing", text)


if __name__ == "__main__":
    main()
