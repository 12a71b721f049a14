"""Planted bugs of files: ledgers that are restored, lost, or shared."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from unittest.mock import patch

from ldpstream.audit import drills
from ldpstream.audit.planted.bug import Bug
from ldpstream.device import device, witness
from ldpstream.device.file_transaction import FileTransaction
from ldpstream.device.memory import StoredEnrolment, StoredPromise
from ldpstream.device.store import DeviceStore
from ldpstream.device.witness import ChangeTime, Witness
from ldpstream.machine_clock import MachineClock


def _any_file_will_do() -> AbstractContextManager[object]:
    return patch.object(witness, "_is_same", lambda found, file: True)


def _made_when_missing() -> AbstractContextManager[object]:
    def existing(path: str | Path, by: Witness | None, clock: MachineClock | None) -> DeviceStore:
        store = DeviceStore(Path(path), by, clock)
        if not store.path.is_file():
            store.create(first_install=True)
        return store

    return patch.object(device, "_existing", existing)


def _trusts_nobody() -> AbstractContextManager[object]:
    honest = ChangeTime.vouches

    def vouches(self: ChangeTime, found: os.stat_result, stamp: str) -> bool:
        opened = vars(self).setdefault("_opened", False)
        vars(self)["_opened"] = True
        return not opened and honest(self, found, stamp)

    return patch.object(ChangeTime, "vouches", vouches)


def _forgets_debits() -> AbstractContextManager[object]:
    honest = FileTransaction.leave

    def leave(
        self: FileTransaction, enrolment: StoredEnrolment, ended: StoredPromise | None
    ) -> None:
        honest(self, enrolment, ended)
        self._execute("DELETE FROM ledger")

    return patch.object(FileTransaction, "leave", leave)


FILES = (
    Bug(
        "leaving forgets what was spent",
        "a device that leaves a stream and joins it again has all of epsilon once more",
        on_device=_forgets_debits,
        drill=drills.leaves_and_joins_again,
    ),
    Bug(
        "a witness of change times only",
        "whether it is the same file is not asked: a copy made within 5 s of a commit comes back"
        " by renaming its folder or switching a link",
        on_device=_any_file_will_do,
        drill=drills.copy_comes_back,
    ),
    Bug(
        "a lost ledger is a first install",
        "a device whose file is gone makes another, with all of epsilon",
        on_device=_made_when_missing,
        drill=drills.lost_ledger,
    ),
    Bug(
        "another process is a rollback",
        "what another process has committed counts as an older copy: whole epsilons are lost",
        on_device=_trusts_nobody,
        drill=drills.two_processes_on_one_file,
    ),
)
