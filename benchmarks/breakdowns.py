"""Measure how much more a group's figures err than the fleet's, and what adding up changes.

    .venv/bin/python benchmarks/breakdowns.py [--repeats N] [--users N] [--json] [--write]

LPF on 200,000 users in slots, of whom 60 % are in Germany, 30 % in France, 5 % in Italy and 5 %
elsewhere; in one case all groups hold the same values, in the other each holds those of the one
before it, shifted by one label. --write puts the table into docs/breakdowns.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ldpstream.lab.breakdown import simulate_parted
from ldpstream.mechanisms.settings import RunOptions
from ldpstream.streams.synthetic import named
from sections import table, write_section

PAGE = Path(__file__).parents[1] / "docs" / "breakdowns.md"
COMMAND = ".venv/bin/python benchmarks/breakdowns.py --write"
ATTRIBUTE = "country=de:0.6,fr:0.3,it:0.05"
STREAMS = ("sin", "log", "generated")
CASES = {"the same in all groups": 0, "shifted by a label": 1}
TIMESTAMPS = 400
SEED = 900
HEAD = [
    "stream",
    "values",
    "group",
    "share",
    "MSE",
    "error by the fleet's",
    "by its own",
    "coverage",
]


def measure(users: int, repeats: int) -> list[dict[str, Any]]:
    """Return a row for the fleet and each group, of each stream and case."""
    options = RunOptions.read(selection="slots", intervals=True)
    rows: list[dict[str, Any]] = []
    for name in STREAMS:
        stream = named(name, users=users, timestamps=TIMESTAMPS)
        for case, shift in CASES.items():
            found = simulate_parted(
                stream,
                "lpf",
                [ATTRIBUTE],
                epsilon=1,
                window=20,
                options=options,
                shift=shift,
                repeats=repeats,
                seed=SEED,
            )
            rows += [row | {"case": case} for row in found]
    return rows


def section(rows: list[dict[str, Any]], users: int, repeats: int) -> str:
    """Return the measured part of the page."""
    lines, fleet = [], rows[0]
    for row in rows:
        fleet = row if row["group"] == "" else fleet
        alone = row["mse_alone"]
        lines.append(
            [
                row["stream"],
                row["case"],
                row["group"] or "the fleet",
                f"{row['share']:.2f}",
                f"{row['mse']:.2e}",
                f"{(row['mse'] / fleet['mse']) ** 0.5:.2f}",
                "" if alone is None else f"{row['mse'] / alone:.2f}",
                f"{row['coverage']:.3f}",
            ]
        )
    said = f"`{COMMAND}`: {users:,} users, {TIMESTAMPS} timestamps, means of {repeats} runs."
    return "\n\n".join([said, table(HEAD, lines)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--users", type=int, default=200_000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    rows = measure(given.users, given.repeats)
    if given.json:
        print(json.dumps(rows, indent=1))
        return
    text = section(rows, given.users, given.repeats)
    print(text)
    if given.write:
        write_section(PAGE, "measured", f"\n{text}\n")


if __name__ == "__main__":
    main()
