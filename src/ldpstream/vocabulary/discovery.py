"""Find texts that nobody listed, by extending heavy prefixes (PEM).

Wang, Li and Jha, "Locally differentially private heavy hitter identification", IEEE TDSC 2019:
each group of devices reports prefixes of its own length, so that one report says one thing. From
the prefixes of one length that stand out, those of the next length are built, and looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from statistics import NormalDist
from unicodedata import category

import numpy as np

from ldpstream.arrays import Bytes, Floats
from ldpstream.vocabulary.evidence import TextEvidence
from ldpstream.vocabulary.kernels import Texts

WIDEST = 200
"""Prefixes of one length that are extended, the heaviest."""
SPARE = 64
"""Prefixes that noise alone may bring among them: too many cost time, too few lose true ones."""
FALSE_SHARE = 0.02
"""The expected share of texts among those listed that nobody holds (Benjamini and Hochberg)."""
MOST_FOUND = 1000
"""Texts that are found at once, the heaviest. A column supports half of all texts, so fakes that
agree on one in each group raise hundreds of thousands; honest devices cannot hold so many."""

_NORMAL = NormalDist()
_ASCII = range(0x20, 0x7F)
_CONTINUED = range(0x80, 0xC0)
_LEADS = {1: range(0xC2, 0xE0), 2: range(0xE0, 0xF0), 3: range(0xF0, 0xF5)}


def discover(evidence: TextEvidence) -> list[bytes]:
    """Return texts that stand out from the noise, the heaviest first.

    Found is what has at most two bytes more than the longest reported prefix. Whoever extends a
    prefix that stands out for sure is one of few thousands that may explain it; whoever extends
    another is one of millions, and must stand out further. So the two are judged apart.
    """
    sure, others = [b""], list[bytes]()
    for length in evidence.vocabulary.prefixes:
        texts = extended([*sure, *others])
        scores = evidence.prefix_figures(texts, length).scores
        places = heaviest(scores, _lenient(len(texts)))[:WIDEST]
        least = listing_score(scores)
        sure = [texts[place] for place in places if scores[place] >= least]
        others = [texts[place] for place in places if scores[place] < least]
    found = [listed for prefixes in (sure, others) for listed in _listed(prefixes, evidence)]
    found.sort(key=lambda listed: -listed[0])
    return _explained([text for _, text in found[:MOST_FOUND]], evidence)


def _listed(prefixes: Sequence[bytes], evidence: TextEvidence) -> Iterator[tuple[float, bytes]]:
    """Yield the heaviest extensions that are listed, with their scores."""
    texts = extended(prefixes, whole=True)
    scores = evidence.figures(texts).scores
    places = heaviest(scores, listing_score(scores))
    for place in islice((one for one in places if is_text(texts[one])), MOST_FOUND):
        yield float(scores[place]), texts[place]


def _explained(texts: Sequence[bytes], evidence: TextEvidence) -> list[bytes]:
    """Drop texts that share a bucket with a heavier one: its reports are all that speaks for them.

    Among millions of texts that are looked at, some share a bucket of each heavy text.
    """
    kept, taken = [], set[tuple[int, int]]()
    for text, buckets in zip(texts, evidence.buckets(texts), strict=True):
        if taken.isdisjoint(buckets):
            kept.append(text)
            taken.update(buckets)
    return kept


def is_text(data: bytes) -> bool:
    r"""Return whether some bytes are a text that can be shown, under a name of its own.

    Some sequences of lead and continuation bytes are no UTF-8, and only fakes report them: all
    would be shown alike.

    >>> is_text("é".encode()), is_text(b"\xe0\x80\x80"), is_text(b"a\xc2\x85")
    (True, False, False)
    """
    try:
        return all(category(character) != "Cc" for character in data.decode())
    except UnicodeDecodeError:
        return False


def listing_score(scores: Floats) -> float:
    """Return the score from which texts are listed, at `FALSE_SHARE` expected false ones.

    Of M texts that were looked at and k at or above a score, noise alone explains M times the
    tail of a normal distribution; the lowest score at which that is at most a share of k.
    """
    looked_at = max(len(scores), 1)
    top = np.sort(scores)[::-1][:10_000]
    tails = np.array([_NORMAL.cdf(-float(score)) for score in top[top > 3.0]])
    ranks = np.arange(1, len(tails) + 1)
    good = np.flatnonzero(tails * looked_at <= FALSE_SHARE * ranks)
    found = int(good[-1]) + 1 if len(good) else 1
    return -_NORMAL.inv_cdf(FALSE_SHARE * found / looked_at)


def _lenient(texts: int) -> float:
    return -_NORMAL.inv_cdf(min(SPARE / max(texts, 1), 0.5))


def heaviest(scores: Floats, least: float) -> list[int]:
    """Return the places of the scores from `least` on, the highest first."""
    above = np.flatnonzero(scores >= least)
    places: list[int] = above[np.argsort(-scores[above])].tolist()
    return places


def extended(prefixes: Sequence[bytes], *, whole: bool = False) -> Texts:
    """Return the prefixes, and each with one and two more bytes that UTF-8 allows there.

    Texts with control characters are not looked for. `whole` leaves out what ends within a
    character, and the empty text.

    >>> texts = extended([b"caf"], whole=True)
    >>> len(texts), texts[0], "café".encode() in {texts[place] for place in range(len(texts))}
    (11041, b'caf', True)
    """
    parts = [part for prefix in prefixes for part in _extensions(prefix, whole)]
    if not parts:
        return Texts.of([])
    lengths = [np.full(len(part), part.shape[1]) for part in parts]
    return Texts(
        np.concatenate([part.ravel() for part in parts]), np.cumsum(np.concatenate(lengths))
    )


def _extensions(prefix: bytes, whole: bool) -> Iterator[Bytes]:
    """Yield tables of a prefix with no, one and two more bytes, one text in each row."""
    own = np.frombuffer(prefix, np.uint8)
    for more in _more(_lacking(prefix), whole):
        table = np.empty((len(more), len(own) + more.shape[1]), np.uint8)
        table[:, : len(own)] = own
        table[:, len(own) :] = more
        if table.shape[1]:
            yield table


def _lacking(prefix: bytes) -> int:
    """Return how many continuation bytes the last character of a prefix lacks."""
    for back, byte in enumerate(reversed(prefix[-4:])):
        if byte < 0x80:
            return 0
        if byte >= 0xC0:
            size = next((size for size, leads in _LEADS.items() if byte in leads), 0)
            return max(size - back, 0)
    return 0


@cache
def _more(lacking: int, whole: bool) -> tuple[Bytes, Bytes, Bytes]:
    """Return the extensions by no, one and two bytes, of a prefix that lacks some."""
    none = [((), lacking)]
    one = [((byte,), left) for byte, left in _next_bytes(lacking)]
    two = [((*first, byte), left) for first, lacks in one for byte, left in _next_bytes(lacks)]
    return _table(none, 0, whole), _table(one, 1, whole), _table(two, 2, whole)


def _table(found: Sequence[tuple[tuple[int, ...], int]], width: int, whole: bool) -> Bytes:
    kept = [more for more, lacking in found if not (whole and lacking)]
    return np.array(kept, np.uint8).reshape(len(kept), width)


def _next_bytes(lacking: int) -> Iterator[tuple[int, int]]:
    """Yield the bytes that may follow, each with how many continuations it then lacks."""
    if lacking:
        yield from ((byte, lacking - 1) for byte in _CONTINUED)
        return
    yield from ((byte, 0) for byte in _ASCII)
    for size, leads in _LEADS.items():
        yield from ((byte, size) for byte in leads)
