"""The shared store with a log for the reports: collectors append them, an engine counts them."""

from __future__ import annotations

import math

from ldpstream.collector.kernels.device_table import DeviceTable
from ldpstream.collector.report_log.contract import LogSettings, ReportLog
from ldpstream.collector.report_log.counts import DEAD_SECONDS, HEARTBEAT, LogCounts
from ldpstream.collector.report_log.jetstream import JetStreamLog
from ldpstream.collector.report_log.messages import LoggedRound
from ldpstream.collector.reports.halves import Half
from ldpstream.collector.reports.records import Records
from ldpstream.collector.reports.verdicts import Verdict, Verdicts, all_of
from ldpstream.collector.store.contract import EngineProgress, observed
from ldpstream.collector.store.database import Database
from ldpstream.collector.store.postgres.store import PostgresStore
from ldpstream.oracles.collector_half import See, Support
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.strata import timestamp_in
from ldpstream.protocol.terms import SelectionMethod

ROUNDS_REMEMBERED = 1000


class LoggedStore(PostgresStore):
    """A store with rounds and releases in the database; reports go to the log, and become counts.

    The engine counts each device once. So a device that reports again while its round is open is
    told that it was accepted, by whichever collector.
    """

    def __init__(
        self, database: Database, master: bytes, settings: LogSettings, patience_ms: int = 5000
    ) -> None:
        super().__init__(database, master, patience_ms)
        self._log: ReportLog = JetStreamLog(settings)
        self._counts = LogCounts(database, patience_ms)
        self._rounds: dict[tuple[str, str], LoggedRound] = {}

    def close(self) -> None:
        super().close()
        self._log.close()
        self._counts.close()

    @observed
    def accept(self, stream: str, round_name: str, records: Records) -> Verdicts:
        """Append records, then look up the round's end: what comes after it is too late.

        If there is no end yet, it will come after these reports, and they count.
        """
        appended = self._log.append(self._logged(stream, round_name), records)
        end = self._log.ended(stream, round_name)
        verdicts = all_of(Verdict.ACCEPTED, len(records))
        first = 0
        for one in appended:
            if end is not None and one.sequence > end:
                verdicts[first : first + one.number] = Verdict.CLOSED
            first += one.number
        return verdicts

    @observed
    def close_round(self, stream: str, round_name: str, at_ms: int) -> int:
        """Close a round, and end it in the log, so that no later one has a report before its end.

        After a crash in between, the next leader closes it again.
        """
        serial = super().close_round(stream, round_name, at_ms)
        self._log.end(self._logged(stream, round_name))
        return serial

    def answered(self, stream: str, round_name: str) -> None:
        """Return None: who has reported is not known here, since engines count."""

    def received(self, stream: str, round_name: str) -> int:
        """Return how many reports of a round are counted so far."""
        tally = self._counts.tally(stream, round_name)
        return 0 if tally is None else tally.outcome.support.reports

    def count(
        self,
        stream: str,
        round_name: str,
        collector: Half,
        see: See | None = None,
        counted: DeviceTable | None = None,
    ) -> Support | None:
        """Return None until an engine has counted up to the end of the round.

        It has counted each round by itself: `counted` is of no use to it (docs/threat-model.md).
        It is ended here as well, after a crash before `close_round` could: that is idempotent.
        """
        tally = self._counts.tally(stream, round_name)
        if tally is None or tally.ended is None:
            self._log.end(self._logged(stream, round_name))
            return None
        return tally.outcome.support

    def engine(self, stream: str) -> EngineProgress:
        """Compare the ends in the log with what is counted; an engine shows itself by a note."""
        waiting = max(0, self._log.last_end(stream) - self._counts.counted(stream))
        seen = self.note(stream, HEARTBEAT)
        age_ms = math.inf if seen is None else self.clock_ms() - seen["at_ms"]
        return EngineProgress(waiting, age_ms < 1000 * DEAD_SECONDS)

    def _logged(self, stream: str, round_name: str) -> LoggedRound:
        key = (stream, round_name)
        if key not in self._rounds:
            while len(self._rounds) >= ROUNDS_REMEMBERED:
                self._rounds.pop(next(iter(self._rounds)))
            self._rounds[key] = self._look_up(stream, round_name)
        return self._rounds[key]

    def _look_up(self, stream: str, round_name: str) -> LoggedRound:
        terms = TermsHistory.read(self.versions(stream)).stratum(round_name)
        assert terms is not None
        oracle, values = terms.oracle.value, len(terms.values)
        if (
            terms.selection is SelectionMethod.SLOTS
        ):  # rounds follow from the terms, and may be many
            size = terms.randomiser(terms.epsilon).report_bytes
            nano = terms.epsilon_nano
            return LoggedRound(stream, round_name, oracle, values, nano, size, terms.tags)
        t = timestamp_in(round_name)
        stored = next(one for one in self.rounds(stream, t - 1) if one.name == round_name)
        nano, size = stored.epsilon_nano, stored.report_bytes
        return LoggedRound(stream, round_name, oracle, values, nano, size)
