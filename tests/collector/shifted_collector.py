"""`ldpstream serve` on a machine whose wall clock is off by what a file says: FILE CONFIGURATION.

The file holds milliseconds and may change at any time. Only the wall clock is moved. A machine that
was started for the tests, a minute ago, counts as settled.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import ldpstream.collector.clock
from ldpstream.cli import main

if __name__ == "__main__":
    offset, true = Path(sys.argv[1]), time.time_ns
    time.time_ns = lambda: true() + 1_000_000 * int(offset.read_text())
    ldpstream.collector.clock.SETTLING_MS = 0
    sys.argv = ["ldpstream", "serve", *sys.argv[2:]]
    main()
