"""How many operations the machines of this folder ran, and which faults they met on the way."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test


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
    TIME_LIES = "time that lies"
    ASLEEP = "machine asleep"
    REBOOTED = "machine rebooted"
    SHARED = "several processes on one file"
    SLOW = "value read slowly"


@dataclass
class Ledger:
    """What was done; the machines add to one of their own kind."""

    operations: int = 0
    faults: Counter[Fault] = field(default_factory=Counter)

    def did(self, fault: Fault | None = None) -> None:
        self.operations += 1
        if fault is not None:
            self.faults[fault] += 1


def assert_a_violation_is_found(machine: type[RuleBasedStateMachine], usual: settings) -> None:
    """By the machine, of a bug that was planted. To make the example small would take minutes."""
    many = settings(
        usual,
        max_examples=2000,
        derandomize=True,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        database=None,
        print_blob=False,
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=many)
