"""Follow texts of an open vocabulary: take up what rises, drop what sinks, release the rest as one.

The figures of followed texts come from LPF over a histogram whose labels are these texts: to a
mechanism a bucket's support is that of a label. Reports of earlier rounds are kept, so a text that
is taken up now gets figures that rest on all of them.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

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
from ldpstream.refine.selected import selected_median, shown_interval
from ldpstream.vocabulary.device import Vocabulary
from ldpstream.vocabulary.discovery import discover, heaviest, listing_score
from ldpstream.vocabulary.evidence import Columns, Evidence
from ldpstream.vocabulary.kernels import Texts
from ldpstream.vocabulary.planning import LISTED_AT

KEPT_WINDOWS = 3
"""Windows of reports in which texts are looked for."""
LOOKS = 4
"""In a window, how often texts are looked for."""
NOTHING = b""
"""The empty text, which is always followed and never listed: a histogram has two labels."""
LEAST_ERROR = 1e-9
"""A share below what any fleet could show, in place of an error of 0."""
MOST_LISTED = 1000
"""Texts that are listed at most, unless somebody wants fewer."""
MOST_FOLLOWED = 2000
"""Texts that are followed at most, the heaviest: each costs time and room at every timestamp."""
DROPPED = 2.0
"""Standard errors below which a text that was not named is followed no longer."""


@dataclass(frozen=True)
class Listed:
    """The texts that stand out at t, the heaviest first, and what is left for all others."""

    t: int
    texts: tuple[bytes, ...]
    shares: Floats
    errors: Floats
    """Standard errors of the shares."""
    low: Floats
    high: Floats
    rest_interval: tuple[float, float]
    fresh: bool
    """Whether reports of t stand behind it."""

    @property
    def rest(self) -> float:
        """The share of everything that is not listed."""
        return float(np.clip(1.0 - self.shares.sum(), 0.0, 1.0))

    @classmethod
    def nothing(cls, t: int, *, fresh: bool) -> Listed:
        """Return what is known while no text is followed: all is in the rest."""
        none = np.zeros(0)
        return cls(t, (), none, none, none, none, (1.0, 1.0), fresh)


class Following:
    """The collector's view of an open vocabulary; it does no I/O and draws no randomness.

    Texts and figures depend on what `save` returns and on the rounds of the last windows, which
    whoever restores it gives back with `recall`.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        epsilon: Epsilon,
        window: int,
        users: int,
        candidates: Sequence[bytes] = (),
        most: int = MOST_LISTED,
    ) -> None:
        self.vocabulary, self.epsilon, self.window, self._users = vocabulary, epsilon, window, users
        self._candidates, self._most = Texts.of(candidates), most
        self._named = hashlib.sha256(b"\0".join(candidates)).hexdigest()
        self._rounds: deque[tuple[int, Sequence[Columns]]] = deque()
        self._texts: tuple[bytes, ...] = (NOTHING,)
        self._mechanism: Mechanism | None = None
        self._looked_t = 0
        self._last = Listed.nothing(0, fresh=False)

    @property
    def reach(self) -> int:
        """The timestamps whose rounds are kept."""
        return KEPT_WINDOWS * self.window

    @property
    def shown(self) -> Listed:
        """What was listed last."""
        return self._last

    def step(self, t: int, groups: Sequence[Columns]) -> Listed:
        """Take the reports of t, group by group; return what is listed."""
        self._keep(t, groups)
        self._hear(t, groups)
        if t * LOOKS // self.window != self._looked_t * LOOKS // self.window:
            self._looked_t = t
            self._look()
        self._last = self._listed(t, any(one.reports for one in groups))
        return self._last

    def _keep(self, t: int, groups: Sequence[Columns]) -> None:
        self._rounds.append((t, groups))
        while self._rounds[0][0] <= t - self.reach:
            self._rounds.popleft()

    # Saving and restoring

    def save(self) -> dict[str, Any]:
        """Return the state, but for the rounds that are kept, as plain JSON."""
        mechanism = self._mechanism
        return {
            "texts": [text.hex() for text in self._texts],
            "mechanism": None if mechanism is None else mechanism.save(),
            "named": self._named,
            "looked_t": self._looked_t,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a saved state; other candidates are looked up at the next timestamp."""
        self._texts = tuple(map(bytes.fromhex, saved["texts"]))
        self._mechanism = None
        if saved["mechanism"] is not None:
            self._mechanism = self._built()
            self._mechanism.adopt(saved["mechanism"])
        self._looked_t = saved["looked_t"] if saved["named"] == self._named else -self.window

    def recall(self, rounds: Iterable[tuple[int, Sequence[Columns]]]) -> None:
        """Take back rounds of the last windows, which were heard before, in order of t."""
        for t, groups in rounds:
            self._keep(t, groups)

    def expect(self, users: int) -> None:
        """Go on with a fleet of another size, and all that is known."""
        self._users, before = users, self._mechanism
        if before is not None:
            self._mechanism = self._built()
            self._mechanism.adopt(before.save())

    # Texts that are followed

    def _look(self) -> None:
        """Look for texts, and follow those that stand out beside those that still do."""
        evidence = evidence_of(
            self.vocabulary, self.epsilon, (groups for _, groups in self._rounds)
        )
        found = set(discover(evidence)) if self.vocabulary.prefixes else set()
        wanted = _heaviest(found | self._standing_out(evidence) | self._lasting(), evidence)
        texts = (NOTHING, *sorted(wanted))
        if texts != self._texts:
            self._follow(texts)

    def _standing_out(self, evidence: Evidence) -> set[bytes]:
        if not len(self._candidates):
            return set()
        scores = evidence.figures(self._candidates).scores
        places = heaviest(scores, listing_score(scores))[:MOST_FOLLOWED]
        return {self._candidates[place] for place in places}

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

    def _listed(self, t: int, fresh: bool) -> Listed:
        if self._mechanism is None:
            return Listed.nothing(t, fresh=fresh)
        shown = self._mechanism.shown
        # The upper side: the lower one is cut off at 0, and a variance counts tails beyond it.
        errors = np.maximum(shown.interval[1] - shown.values, LEAST_ERROR) / QUANTILE
        places = heaviest(shown.values / errors, LISTED_AT)
        places = [place for place in places if self._texts[place] != NOTHING]
        places = sorted(places, key=lambda place: -shown.values[place])[: self._most]
        shares, errors = shown.values[places], errors[places]
        least = LISTED_AT * errors
        low, high = shown_interval(shares, errors, least)
        # What was shown because its noise was high is missing from the rest.
        centre = 1.0 - float(selected_median(shares, errors, least).sum())
        off = QUANTILE * float(np.sqrt(errors @ errors))
        texts = tuple(self._texts[place] for place in places)
        start, end = np.clip([min(centre, 1 - shares.sum()) - off, centre + off], 0.0, 1.0)
        return Listed(t, texts, shares, errors, low, high, (float(start), float(end)), fresh)


def _heaviest(texts: set[bytes], evidence: Evidence) -> list[bytes]:
    """Return the texts that weigh most of those that are to be followed, if they are too many."""
    kept = sorted(texts)
    if len(kept) <= MOST_FOLLOWED:
        return kept
    shares = evidence.figures(Texts.of(kept)).shares
    return [kept[place] for place in np.argsort(-shares, kind="stable")[:MOST_FOLLOWED]]


def evidence_of(
    vocabulary: Vocabulary, epsilon: Epsilon, rounds: Iterable[Sequence[Columns]]
) -> Evidence:
    """Return what the reports of some rounds say together, group by group."""
    pooled = [Columns.summed(heard) for heard in zip(*rounds, strict=True)]
    return Evidence(vocabulary, epsilon, pooled or [Columns.none()] * len(vocabulary.groups))
