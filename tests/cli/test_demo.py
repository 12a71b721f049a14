"""`ldpstream demo`: what it prints where."""

from __future__ import annotations

import json
import subprocess
import sys


def test_json_is_one_object_and_the_page_is_named_before() -> None:
    command = [sys.executable, "-m", "ldpstream", "demo", "--json"]
    command += ["--seconds", "6", "--devices", "200"]
    for _ in range(5):  # a busy machine may be late
        ran = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
        told = json.loads(ran.stdout)
        if told["reports"] > 10 * told["refused"]:
            break
    assert told["reports"] > 10 * told["refused"]
    assert {"releases", "reports", "refused", "mre", "cfpu", "url", "page"} <= set(told)
    assert told["page"] in ran.stderr.splitlines()[0]
    assert told["page"].startswith(told["url"])
