"""How many devices took part in the last window: an interval knows nothing of those who sleep."""

from __future__ import annotations

from ldpstream.collector.store.contract import NewRound


class Participation:
    """A lower bound on the distinct devices that reported in the last w timestamps.

    A device spends at most epsilon in a window. So n reports that cost e each come from at least
    n e / epsilon devices: from n of them, where each report costs all of epsilon.
    """

    def __init__(self, epsilon_nano: int, window: int) -> None:
        self._epsilon_nano = epsilon_nano
        self._window = window
        self._rounds: dict[str, tuple[int, int, int]] = {}

    def add(self, asked: NewRound, reports: int) -> None:
        """Count the reports of a round; after a crash it may be counted again."""
        self._rounds[asked.name] = asked.t, asked.epsilon_nano, reports

    def at(self, t: int) -> int:
        """Return at least how many devices reported in the window that ends with t."""
        first = t - self._window + 1
        self._rounds = {n: one for n, one in self._rounds.items() if one[0] >= first}
        rounds = self._rounds.values()
        spent = sum(nano * reports for _, nano, reports in rounds)
        largest = max((reports for _, _, reports in rounds), default=0)
        return max(-(-spent // self._epsilon_nano), largest)
