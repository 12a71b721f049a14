"""How many operations the machines of this folder ran, and which faults they met on the way."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum


class Fault(StrEnum):
    """What goes wrong around an honest party."""

    REQUEST_LOST = "request lost"
    RESPONSE_LOST = "response lost"
    DUPLICATED = "duplicated"
    REORDERED = "delayed and reordered"
    REPLAYED = "replayed"
    FORGED = "forged or malformed"
    KILLED = "killed"
    CLOCK_FORWARD = "clock set forward"
    CLOCK_BACK = "clock set back"
    DISK_FULL = "disk full"
    READ_ONLY = "read-only disk"
    CORRUPT = "corrupt or truncated file"
    BROUGHT_BACK = "older copy brought back"
    LIES = "terms or parameters that lie"


@dataclass
class Ledger:
    """What was done; the machines add to one of their own kind."""

    operations: int = 0
    faults: Counter[Fault] = field(default_factory=Counter)

    def did(self, fault: Fault | None = None) -> None:
        self.operations += 1
        if fault is not None:
            self.faults[fault] += 1
