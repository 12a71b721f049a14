"""Rotate the master secret under a running fleet, and count the reports that are lost.

    .venv/bin/python benchmarks/rotation.py [--devices N] [--interval S] [--window W] [--seconds S]

A real `ldpstream serve` and a real `ldpstream fleet`. Once all devices were heard the master secret
is rotated; once a window has no report with an earlier key, that is dropped. Prints a JSON object.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

from ldpstream.cli.admin_client import AdminClient

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.serving import ENROLMENT, HEAD, TOKEN, CollectorProcess, drop_earlier

STREAM = """
[[stream]]
name = "sin"
labels = ["0", "1"]
epsilon = 1
window = {window}
interval = "{interval}s"
oracle = "grr"
population = {devices}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("devices", 2000), ("interval", 15), ("window", 4), ("seconds", 270)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = HEAD + STREAM.format(**vars(given))
        with CollectorProcess.of(Path(folder), text, ENROLMENT) as collector:
            print(json.dumps(vars(given) | run(collector, given.devices, given.seconds)))


def run(collector: CollectorProcess, devices: int, seconds: int) -> dict[str, object]:
    """Rotate and drop while a fleet runs; return what became of its reports."""
    admin = AdminClient.of(collector.file, collector.url)
    command = f"-m ldpstream fleet --collector {collector.url} --token".split()
    options = f"--devices {devices} --stream sin:timestamps=2000 --name sin --seconds {seconds}"
    fleet = subprocess.Popen(
        [sys.executable, *command, TOKEN, *options.split(), "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    rotated_t = dropped_t = renewed = 0
    while fleet.poll() is None:
        time.sleep(2)
        t, renewed = metric(collector, "last_timestamp"), metric(collector, "keys_renewed_total")
        if not rotated_t and metric(collector, "devices_heard") >= devices:
            admin.post("keys/rotate")
            rotated_t = t + 1
        elif rotated_t and not dropped_t and drop_earlier(admin):
            dropped_t = t + 1
    output, _ = fleet.communicate()
    told = json.loads(output)
    outcome = told[0] if isinstance(told, list) else told
    with urlopen(f"{collector.url}/v1/streams/sin/releases") as answer:
        received = [one["received"] for one in json.load(answer)["releases"]]
    kept = {name: outcome[name] for name in ("reports", "undelivered", "refused")}
    return kept | {
        "rotated_t": rotated_t,
        "dropped_t": dropped_t,
        "renewed": renewed,
        "received": received,
    }


def metric(collector: CollectorProcess, name: str) -> int:
    with urlopen(f"{collector.url}/metrics") as answer:
        found = re.search(rf"^ldpstream_{name}{{.*}} (\S+)$", answer.read().decode(), re.M)
    return int(float(found[1])) if found else 0


if __name__ == "__main__":
    main()
