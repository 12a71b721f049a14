"""Measure speed, exactness and size at scale, on real servers.

    .venv/bin/python benchmarks/scale.py [--quick] [--json] [--write] [--only SECTION ...]

- ingest: reports/s that 1 and 2 collectors accept durably on SQLite, PostgreSQL and JetStream;
- faults: what was killed, how often, what was lost;
- local, spark: seconds from a round's deadline to its tally for 1, 5 and 20 million OLH reports,
  d = 128, in one process and on Spark (two executors of one core), with memory; and the cost of a
  report from 10^5 to 10^7 of them in a round;
- wire: bytes and connections of a device in a day, with slots and with long polls;
- million: 1,000,000 simulated devices with slots against one collector, for 10 minutes; --folder
  keeps them, since enrolling so many takes a quarter of an hour;
- sizes for fleets of up to a billion devices, computed from the above.

--quick runs small sizes of everything, in about three minutes on an idle machine. --write puts
the tables into docs/scale.md and the figures into docs/scale.json; --only measures some sections
again and takes the others from there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the servers are those of the tests

from ldpstream.lab.files import write_whole  # noqa: E402
from scaling import faults, ingest_rates, million, sizing, tallies, wire  # noqa: E402
from scaling.page import page_with  # noqa: E402
from scaling.servers import servers  # noqa: E402

PAGE = ROOT / "docs" / "scale.md"
FIGURES = ROOT / "docs" / "scale.json"
SMALL = [100_000, 300_000]
MILLIONS = [1_000_000, 5_000_000, 20_000_000]
GROWTH = [100_000, 1_000_000, 10_000_000]

Rows = list[dict[str, Any]]
SECTIONS = ("ingest", "faults", "local", "spark", "wire", "million")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="put the results into docs/")
    parser.add_argument("--only", action="append", choices=SECTIONS, help="measure this again")
    parser.add_argument("--folder", type=Path, help="where the million devices are kept")
    options = parser.parse_args()
    results = json.loads(FIGURES.read_text()) if options.only else {}
    for section in options.only or SECTIONS:
        results[section] = measure(section, quick=options.quick, folder=options.folder)
    results["sizing"] = sizing.table(_measured(results))
    if options.write:
        write_whole(PAGE, page_with(PAGE.read_text(), results))
        write_whole(FIGURES, json.dumps(results, indent=1) + "\n")
    print(json.dumps(results, indent=1) if options.json else page_with("", results))


def measure(section: str, *, quick: bool, folder: Path | None = None) -> dict[str, Any]:
    """Return the rows of a section, and the conditions under which they were measured."""
    print(f"measuring: {section}", file=sys.stderr, flush=True)
    load = os.getloadavg()[0]
    if section == "wire":
        rows = wire.measure()
    elif section == "million":
        rows = million.measure(quick, folder)
    else:
        rows = _on_servers(section, quick)
    return {"quick": quick, "cores": os.cpu_count(), "load": round(load, 1), "rows": rows}


def _on_servers(section: str, quick: bool) -> Rows:
    with servers() as found:
        work: dict[str, Callable[[], Rows]] = {
            "ingest": lambda: ingest_rates.measure(quick=quick),
            "faults": lambda: faults.measure(
                found, 1 if quick else 5, spark_times=1 if quick else 2
            ),
            "local": lambda: tallies.measure(
                found, "local", SMALL if quick else sorted({*GROWTH, *MILLIONS})
            ),
            "spark": lambda: tallies.measure(found, "spark", SMALL if quick else MILLIONS),
        }
        return work[section]()


def _measured(results: dict[str, Any]) -> sizing.Measured:
    local, spark = results["local"]["rows"][-1], results["spark"]["rows"][-1]
    collector = next(
        row
        for row in results["ingest"]["rows"]
        if (row["store"], row["collectors"]) == ("jetstream", 1)
    )
    return sizing.Measured(
        batch_rate=1e6 / collector["collector_us_per_report"],
        single_rate=1e6 / collector["single_us_per_report"],
        append_rate=local["appended_per_second"],
        log_bytes=local["log_bytes_per_report"],
        count_microseconds=spark["cpu_microseconds_per_report"],
        report_bytes=results["wire"]["rows"][0]["bytes_of_a_report"],
    )


if __name__ == "__main__":
    main()
