"""Bugs that are planted for the duration of one trial, to show that the audit finds them.

A device does not trust its collector, so a bug of the collector alone leaks nothing: the ledger
refuses. A bug that concerns both sides is planted on both. Nothing but the audit imports this.
"""

from ldpstream.audit.planted.bug import Bug
from ldpstream.audit.planted.clocks import CLOCKS
from ldpstream.audit.planted.files import FILES
from ldpstream.audit.planted.mechanisms import MECHANISMS
from ldpstream.audit.planted.values import VALUES
from ldpstream.audit.planted.wallets import WALLETS

BUGS: tuple[Bug, ...] = (*MECHANISMS, *CLOCKS, *FILES, *VALUES, *WALLETS)
