"""Follow texts of an open vocabulary: take up what rises, drop what sinks, release the rest as one.

The figures of followed texts come from LPF over a histogram whose labels are these texts: to a
mechanism a bucket's support is that of a label. Reports of earlier rounds are kept, so a text that
is taken up now gets figures that rest on all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.mechanisms.mechanism import Mechanism, drive
from ldpstream.mechanisms.registry import build
from ldpstream.mechanisms.settings import Settings
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.terms import Selection
from ldpstream.refine.consistency import Consistency
from ldpstream.refine.intervals import QUANTILE
from ldpstream.refine.selected import selected_interval
from ldpstream.vocabulary.device import Vocabulary
from ldpstream.vocabulary.discovery import discover, heaviest, listing_score
from ldpstream.vocabulary.evidence import Columns, Evidence
from ldpstream.vocabulary.kernels import Texts

KEPT_WINDOWS = 3
"""Windows of reports in which texts are looked for."""
LOOKS = 4
"""In a window, how often texts are looked for."""
STANDS_OUT = 4.5
"""Standard errors of its figure from which a text is listed; the rest cannot be told apart."""
NOTHING = b""
"""The empty text, which is always followed and never listed: a histogram has two labels."""
LEAST_ERROR = 1e-9
"""A share below what any fleet could show, in place of an error of 0."""
DROPPED = 2.0
"""Standard errors below which a text that was not named is followed no longer."""


@dataclass(frozen=True)
class Listed:
    """The texts that stand out at t, the heaviest first, and what is left for all others."""

    t: int
    texts: tuple[bytes, ...]
    shares: Floats
    low: Floats
    high: Floats

    @property
    def rest(self) -> float:
        """The share of everything that is not listed."""
        return float(np.clip(1.0 - self.shares.sum(), 0.0, 1.0))


class Following:
    """The collector's view of an open vocabulary; it does no I/O and draws no randomness."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        epsilon: Epsilon,
        window: int,
        users: int,
        candidates: Sequence[bytes] = (),
    ) -> None:
        self.vocabulary, self.epsilon, self.window, self._users = vocabulary, epsilon, window, users
        self._candidates = Texts.of(candidates)
        self._rounds: deque[tuple[int, Sequence[Columns]]] = deque(maxlen=KEPT_WINDOWS * window)
        self._texts: tuple[bytes, ...] = (NOTHING,)
        self._mechanism: Mechanism | None = None

    def step(self, t: int, groups: Sequence[Columns]) -> Listed:
        """Take the reports of t, group by group; return what is listed."""
        self._rounds.append((t, groups))
        self._hear(t, groups)
        if t * LOOKS % self.window < LOOKS:
            self._look()
        return self._listed(t)

    def _look(self) -> None:
        """Look for texts, and follow those that stand out beside those that still do."""
        groups = range(len(self.vocabulary.groups))
        pooled = [Columns.summed(heard[group] for _, heard in self._rounds) for group in groups]
        evidence = Evidence(self.vocabulary, self.epsilon, pooled)
        found = set(discover(evidence)) if self.vocabulary.prefixes else set()
        texts = (NOTHING, *sorted(found | self._standing_out(evidence) | self._lasting()))
        if texts != self._texts:
            self._follow(texts)

    def _standing_out(self, evidence: Evidence) -> set[bytes]:
        if not len(self._candidates):
            return set()
        scores = evidence.figures(self._candidates).scores
        return {self._candidates[place] for place in heaviest(scores, listing_score(scores))}

    def _lasting(self) -> set[bytes]:
        if self._mechanism is None:
            return set()
        shown = self._mechanism.shown
        scores = shown.values / np.sqrt(shown.variance)
        return {self._texts[place] for place in np.flatnonzero(scores >= DROPPED)} - {NOTHING}

    def _follow(self, texts: tuple[bytes, ...]) -> None:
        """Follow other texts, from the reports that are kept."""
        self._texts = texts
        self._mechanism = self._built() if len(texts) > 1 else None
        for t, groups in self._rounds:
            self._hear(t, groups)

    def _built(self) -> Mechanism:
        settings = Settings(
            labels=len(self._texts),
            users=self._users,
            epsilon=self.epsilon,
            window=self.window,
            oracle=Oracle.HADAMARD,
            selection=Selection.SLOTS,
            consistency=Consistency.NONE,
        )
        return build("lpf", settings)

    def _hear(self, t: int, groups: Sequence[Columns]) -> None:
        if self._mechanism is None:
            return
        noise = self._mechanism.noise
        support = Evidence(self.vocabulary, self.epsilon, groups).support(self._texts)
        drive(self._mechanism.step(t), lambda ask: noise.tally(ask.epsilon, support))

    def _listed(self, t: int) -> Listed:
        if self._mechanism is None:
            return Listed(t, (), *np.zeros((3, 0)))
        shown = self._mechanism.shown
        # The upper side: the lower one is cut off at 0, and a variance counts tails beyond it.
        errors = np.maximum(shown.interval[1] - shown.values, LEAST_ERROR) / QUANTILE
        places = heaviest(shown.values / errors, STANDS_OUT)
        places = [place for place in places if self._texts[place] != NOTHING]
        shares, errors = shown.values[places], errors[places]
        low, high = selected_interval(shares, errors, STANDS_OUT * errors)
        return Listed(t, tuple(self._texts[place] for place in places), shares, low, high)
