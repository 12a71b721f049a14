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
from ldpstream.protocol.terms import SelectionMethod
from ldpstream.refine.consistency import Consistency
from ldpstream.refine.intervals import QUANTILE
from ldpstream.refine.selected import selected_median, shown_interval
from ldpstream.vocabulary.device import Vocabulary
from ldpstream.vocabulary.discovery import discover, heaviest, listing_score
from ldpstream.vocabulary.evidence import ColumnCounts, TextEvidence
from ldpstream.vocabulary.kernels import Texts
from ldpstream.vocabulary.planning import LISTED_AT

KEPT_AT = 3.5
"""The standard errors at which a text that was listed is listed no longer."""
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
class ListedTexts:
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
    def nothing(cls, t: int, *, fresh: bool) -> ListedTexts:
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
        self._rounds: deque[tuple[int, Sequence[ColumnCounts]]] = deque()
        self._texts: tuple[bytes, ...] = (NOTHING,)
        self._mechanism: Mechanism | None = None
        self._looked_t = 0
        self._last = ListedTexts.nothing(0, fresh=False)
        self._shown: frozenset[bytes] = frozenset()
        """The texts that were listed last, which are not let go as soon as they waver."""

    @property
    def reach(self) -> int:
        """The timestamps whose rounds are kept."""
        return KEPT_WINDOWS * self.window

    @property
    def shown(self) -> ListedTexts:
        """What was listed last."""
        return self._last

    def step(self, t: int, groups: Sequence[ColumnCounts]) -> ListedTexts:
        """Take the reports of t, group by group; return what is listed."""
        self._keep(t, groups)
        self._hear(t, groups)
        if t * LOOKS // self.window != self._looked_t * LOOKS // self.window:
            self._looked_t = t
            self._look()
        self._last = self._listed(t, any(one.reports for one in groups))
        self._shown = frozenset(self._last.texts)
        return self._last

    def _keep(self, t: int, groups: Sequence[ColumnCounts]) -> None:
        self._rounds.append((t, groups))
        while self._rounds[0][0] <= t - self.reach:
            self._rounds.popleft()

    # Saving and restoring

    def save(self) -> dict[str, Any]:
        """Return the state, but for the rounds that are kept, as plain JSON."""
        mechanism = self._mechanism
        return {
            "texts": [text.hex() for text in self._texts],
            "listed": sorted(text.hex() for text in self._shown),
            "mechanism": None if mechanism is None else mechanism.save(),
            "named": self._named,
            "looked_t": self._looked_t,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a saved state; other candidates are looked up at the next timestamp."""
        self._texts = tuple(map(bytes.fromhex, saved["texts"]))
        self._shown = frozenset(map(bytes.fromhex, saved["listed"]))
        self._mechanism = None
        if saved["mechanism"] is not None:
            self._mechanism = self._built()
            self._mechanism.adopt(saved["mechanism"])
        self._looked_t = saved["looked_t"] if saved["named"] == self._named else -self.window

    def recall(self, rounds: Iterable[tuple[int, Sequence[ColumnCounts]]]) -> None:
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
        wanted = _most_held(
            found | self._standing_out(evidence) | self._lasting(evidence), evidence
        )
        texts = (NOTHING, *sorted(wanted))
        if texts != self._texts:
            self._follow(texts)

    def _standing_out(self, evidence: TextEvidence) -> set[bytes]:
        if not len(self._candidates):
            return set()
        scores = evidence.figures(self._candidates).scores
        places = heaviest(scores, listing_score(scores))[:MOST_FOLLOWED]
        return {self._candidates[place] for place in places}

    def _lasting(self, evidence: TextEvidence) -> set[bytes]:
        """Return the texts that still stand out.

        One that shares a bucket with a heavier one may have been taken up when there were too few
        reports to tell: its figure is then about half of the other's, and would never sink.
        """
        if self._mechanism is None:
            return set()
        shown = self._mechanism.shown
        scores = shown.values / np.sqrt(shown.variance)
        agree = evidence.figures(Texts.of(self._texts)).agree
        lasting = np.flatnonzero((scores >= DROPPED) & agree)
        return {self._texts[place] for place in lasting} - {NOTHING}

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
            selection=SelectionMethod.SLOTS,
            consistency=Consistency.NONE,
        )
        return build("lpf", settings)

    def _hear(self, t: int, groups: Sequence[ColumnCounts]) -> None:
        if self._mechanism is None:
            return
        noise = self._mechanism.noise
        support = TextEvidence(self.vocabulary, self.epsilon, groups).support(self._texts)
        drive(self._mechanism.step(t), lambda ask: noise.tally(ask.epsilon, support))

    def _listed(self, t: int, fresh: bool) -> ListedTexts:
        if self._mechanism is None:
            return ListedTexts.nothing(t, fresh=fresh)
        shown = self._mechanism.shown
        values, (low, high) = shown.values, shown.interval
        below, above = (
            np.maximum(reach, LEAST_ERROR) / QUANTILE for reach in (values - low, high - values)
        )
        # An end that is cut off at 0 tells nothing of how far the figure may be off.
        below = np.where(low > 0, below, above)
        # What is listed stands out from the tails beyond the interval, too, which the variance
        # counts; a side that may have jumped away says nothing of whether there is anything.
        errors = np.where(low > 0, np.maximum(below, np.sqrt(shown.variance)), above)
        least = np.where([text in self._shown for text in self._texts], KEPT_AT, LISTED_AT)
        places = [
            place
            for place in np.argsort(-values)
            if values[place] >= least[place] * errors[place] and self._texts[place] != NOTHING
        ][: self._most]
        return self._selected(t, places, values, (below, above), least * errors, fresh=fresh)

    def _selected(
        self,
        t: int,
        places: Sequence[int],
        values: Floats,
        errors: tuple[Floats, Floats],
        least: Floats,
        *,
        fresh: bool,
    ) -> ListedTexts:
        """List the texts at some places, with intervals that allow for their having been chosen.

        A possible jump widens an interval to one side: errors are those below, and those above.
        """
        shares, least = values[places], least[places]
        below, above = (part[places] for part in errors)
        low, _ = shown_interval(shares, below, least)
        _, high = shown_interval(shares, np.maximum(below, above), least)
        # What was shown because its noise was high is missing from the rest.
        centre = 1.0 - float(selected_median(shares, below, least).sum())
        start = min(centre, 1.0 - float(shares.sum())) - QUANTILE * float(np.sqrt(above @ above))
        end = centre + QUANTILE * float(np.sqrt(below @ below))
        rest = min(max(start, 0.0), 1.0), min(max(end, 0.0), 1.0)
        texts = tuple(self._texts[place] for place in places)
        return ListedTexts(t, texts, shares, (high - low) / (2 * QUANTILE), low, high, rest, fresh)


def _most_held(texts: set[bytes], evidence: TextEvidence) -> list[bytes]:
    """Return the texts that are to be followed; if they are too many, those that weigh most."""
    kept = sorted(texts)
    if len(kept) <= MOST_FOLLOWED:
        return kept
    shares = evidence.figures(Texts.of(kept)).shares
    return [kept[place] for place in np.argsort(-shares, kind="stable")[:MOST_FOLLOWED]]


def evidence_of(
    vocabulary: Vocabulary, epsilon: Epsilon, rounds: Iterable[Sequence[ColumnCounts]]
) -> TextEvidence:
    """Return what the reports of some rounds say together, group by group."""
    pooled = [ColumnCounts.summed(heard) for heard in zip(*rounds, strict=True)]
    return TextEvidence(
        vocabulary, epsilon, pooled or [ColumnCounts.none()] * len(vocabulary.groups)
    )
