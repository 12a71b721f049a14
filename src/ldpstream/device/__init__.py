"""The part of the package that runs on a device: its ledger, its randomisers, its transports.

It needs the standard library only: a device has neither NumPy nor the collector (docs/device.md).

>>> grr = Oracle.GRR.device(labels=4, epsilon=Epsilon.of(1))
>>> len(grr.encode(grr.perturb(2, SystemSource())))
2
"""

from ldpstream.device.device import AsyncDevice, Device
from ldpstream.device.exchange import Unreachable
from ldpstream.device.session import PollResult
from ldpstream.device.status import Status, read_status
from ldpstream.device.store import LedgerUnusable
from ldpstream.device.wallet import Limit
from ldpstream.device.witness import ChangeTime, CounterFile, Witness
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.randomness import SystemSource
from ldpstream.protocol.answers import Refused
from ldpstream.protocol.succession import Acceptance, Policy
from ldpstream.protocol.terms import Terms, TermsRefused

__all__ = [
    "Acceptance",
    "AsyncDevice",
    "ChangeTime",
    "CounterFile",
    "Device",
    "Epsilon",
    "LedgerUnusable",
    "Limit",
    "Oracle",
    "Policy",
    "PollResult",
    "Refused",
    "Status",
    "SystemSource",
    "Terms",
    "TermsRefused",
    "Unreachable",
    "Witness",
    "read_status",
]
