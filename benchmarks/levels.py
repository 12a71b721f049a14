"""Measure what levels of privacy cost and gain: ours, PLPD and PLPA, and the strictest for all.

    .venv/bin/python benchmarks/levels.py [--repeats N] [--users N] [--json] [--write]

Levels (0.5, 40), (1, 20) and (2, 20) in equal shares, once chosen independently of the values and
once not: then half of the users of each level hold values in the order of the levels. "Everybody"
is the same fleet at epsilon 0.5 and a window of 40. --write puts the table into docs/levels.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ldpstream.lab.personal import PERSONAL
from ldpstream.lab.simulation import Simulation, simulate
from ldpstream.streams.synthetic import STREAMS
from sections import table, write_section

PAGE = Path(__file__).parents[1] / "docs" / "levels.md"
COMMAND = ".venv/bin/python benchmarks/levels.py --write"
LEVELS = "0.5:40:1/3,1:20:1/3,2:20:1/3"
CHOICES = {"independent": LEVELS, "correlated": f"{LEVELS},correlated:0.5"}
MEASURED = ("sin", "log", "lns", "step")
OURS = ("lpu", "lpf")
EVERYBODY = "everybody, "
SEED = 700
"""Constants were chosen with other seeds, 0 to 5."""

Figures = dict[str, dict[str, float]]


def figures_of(simulation: Simulation) -> dict[str, float]:
    return {name: simulation.mean(name) for name in ("mse", "coverage")}


def measure(name: str, users: int, repeats: int) -> dict[str, Figures]:
    """Return the figures on one stream, by mechanism and by how levels were chosen."""
    stream = STREAMS[name](users=users)
    found: dict[str, Figures] = {}
    for mechanism in OURS:
        strictest = simulate(
            stream,
            mechanism,
            epsilon=0.5,
            window=40,
            selection="slots",
            repeats=repeats,
            seed=SEED,
        )
        found[EVERYBODY + mechanism] = dict.fromkeys(CHOICES, figures_of(strictest))
    for mechanism in (*OURS, *PERSONAL):
        found[mechanism] = {
            choice: figures_of(
                simulate(stream, mechanism, levels=levels, repeats=repeats, seed=SEED)
            )
            for choice, levels in CHOICES.items()
        }
    return found


def page(measured: dict[str, dict[str, Figures]], users: int, repeats: int) -> str:
    """Return the part of docs/levels.md that is measured."""
    head = ["MSE", *(f"{name}, {choice}" for name in measured for choice in CHOICES)]
    mechanisms = list(next(iter(measured.values())))
    rows = [
        [name, *(f"{measured[s][name][c]['mse']:.2e}" for s in measured for c in CHOICES)]
        for name in mechanisms
    ]
    gains = [
        [
            name,
            *(
                f"{found[EVERYBODY + 'lpf'][c]['mse'] / found[name][c]['mse']:.2f}"
                for found in measured.values()
                for c in CHOICES
            ),
        ]
        for name in ("lpf", *PERSONAL)
    ]
    covered = [
        "lpf",
        *(f"{f['lpf'][c]['coverage']:.3f}" for f in measured.values() for c in CHOICES),
    ]
    said = f"`{COMMAND}`: {users:,} users, 800 timestamps, means of {repeats} runs."
    return "\n\n".join(
        [
            said,
            table(head, rows),
            "How many times smaller the MSE is than that of everybody at (0.5, 40) with LPF:",
            table(["gain", *head[1:]], gains),
            "Share of LPF's intervals, of level 0.9, that contain the truth:",
            table(["coverage", *head[1:]], [covered]),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--users", type=int, default=200_000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    measured = {name: measure(name, given.users, given.repeats) for name in MEASURED}
    text = page(measured, given.users, given.repeats)
    print(json.dumps(measured, indent=1) if given.json else text)
    if given.write:
        write_section(PAGE, "measured", f"\n{text}\n")


if __name__ == "__main__":
    main()
