"""The figures of any texts, from the rounds in a store: no list has to name them before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from ldpstream.collector.rounds.running_vocabulary import past_columns
from ldpstream.collector.store.contract import Store
from ldpstream.mechanisms.following import KEPT_WINDOWS, evidence_of
from ldpstream.protocol.terms import Terms
from ldpstream.refine.intervals import QUANTILE
from ldpstream.vocabulary import Vocabulary
from ldpstream.vocabulary.device import encoded
from ldpstream.vocabulary.evidence import TextEvidence
from ldpstream.vocabulary.kernels import Texts


@dataclass(frozen=True)
class _Read:
    """The reports of the windows up to a release."""

    t: int
    evidence: TextEvidence
    windows: float
    """How many windows they are of: less than is kept while the stream is young."""


class TextFigures:
    """The figures of texts by the last windows, whose reports are read once for each release."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: _Read | None = None
        self._lock = Lock()
        """One reader at a time computes; the transform is the same for all."""

    def of(self, terms: Terms, texts: Sequence[str], population: int) -> dict[str, Any]:
        """Return the figures of texts at the last release, each with its interval."""
        known = self._store.stream(terms.stream)
        assert known is not None
        with self._lock:
            if self._read is None or self._read.t != known.last_t:
                self._read = self._newly_read(terms, known.last_t)
            read = self._read
            looked_up = Texts.of([encoded(text) for text in texts])
            shares, errors = read.evidence.measured(looked_up, read.windows, population)
        off = np.minimum(QUANTILE * errors, 1.0)
        # A figure is unbiased and may be negative: an interval that is cut at 0 reaches down to it.
        low = np.minimum(np.clip(shares - off, 0.0, 1.0), shares)
        high = np.maximum(np.clip(shares + off, 0.0, 1.0), shares)
        figures = zip(texts, shares.tolist(), low.tolist(), high.tolist(), strict=True)
        told = [dict(zip(("text", "value", "low", "high"), one, strict=True)) for one in figures]
        return {"t": read.t, "texts": told}

    def _newly_read(self, terms: Terms, last_t: int) -> _Read:
        assert isinstance(terms.values, Vocabulary)
        past = past_columns(self._store, terms, last_t)
        evidence = evidence_of(terms.values, terms.epsilon, (groups for _, groups in past))
        timestamps = min(max(last_t, 1), KEPT_WINDOWS * terms.window)
        return _Read(last_t, evidence, timestamps / terms.window)
