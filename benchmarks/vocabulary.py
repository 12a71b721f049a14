"""Measure an open vocabulary: what is found from an empty list, and how fast reports are decoded.

    .venv/bin/python benchmarks/vocabulary.py [--quick] [--seeds N] [--first SEED]
        [--poisoning] [--json]

Discovery: a fleet whose devices hold texts of 3 to 8 letters, Zipf with exponent 1, epsilon 2 and a
window of 20; three windows. Decoding: reports of 2^20 - 1 buckets against a list of candidates,
beside local hashing (OLH), whose cost is reports times candidates and is measured on a part of
both. --quick has a tenth of the devices, which find only what is three times as heavy.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ldpstream.lab.vocabulary import LIGHT, Goal, TextFleet, follow
from ldpstream.mechanisms.following import Following, ListedTexts
from ldpstream.oracles import Oracle
from ldpstream.oracles.hadamard.device import Device
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.streams.words import random_texts, shares_of, zipf_holders
from ldpstream.vocabulary import Vocabulary
from ldpstream.vocabulary.evidence import ColumnCounts, TextEvidence
from ldpstream.vocabulary.kernels import Texts

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.hostile.poisoning.texts import TextAttack, poison

EPSILON, WINDOW, WINDOWS = Epsilon.of(2), 20, 3
BITS, PREFIXES = 20, (2, 4, 6)
LONGEST = 8
SEED = 2300
"""Constants were chosen with seeds 1 to 6."""
OLH_LABELS, OLH_REPORTS = 4096, 200_000


def discovery(seed: int, users: int, texts: int) -> dict[str, Any]:
    """Return what one fleet's texts came to, and how long a timestamp of the collector took."""
    heavy = 0.01 * (1_000_000 / users) ** 0.5
    rng = np.random.default_rng(seed)
    words = random_texts(texts, LONGEST, rng)
    holders = zipf_holders(texts, users, 1.0, rng)
    vocabulary = Vocabulary(int(rng.integers(1 << 62)), BITS, PREFIXES)
    fleet = TextFleet(Texts.of(words), holders, vocabulary, EPSILON, WINDOW, rng)
    following = Timed(vocabulary, EPSILON, WINDOW, users)
    goal = Goal(heavy, LIGHT * heavy, LONGEST)
    found = follow(fleet, following, WINDOWS * WINDOW, shares_of(words, holders), goal)
    seconds = np.array(following.seconds[1:])  # the first compiles
    return asdict(found) | {
        "heavy": heavy,
        "timestamp_seconds": float(np.median(seconds)),
        "look_seconds": float(seconds.max()),
    }


class Timed(Following):
    """Tells how long the collector takes for each timestamp; a few of them look for texts."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.seconds: list[float] = []

    def step(self, t: int, groups: Sequence[ColumnCounts]) -> ListedTexts:
        began = time.perf_counter()
        listed = super().step(t, groups)
        self.seconds.append(time.perf_counter() - began)
        return listed


def decoding(reports: int, candidates: int) -> dict[str, float]:
    """Return the seconds of decoding reports against candidates, ours and by local hashing."""
    rng = np.random.default_rng(SEED)
    vocabulary = Vocabulary(7, BITS)
    columns = rng.integers(
        Device(vocabulary.buckets, EPSILON).columns, size=reports, dtype=np.uint32
    )
    texts = Texts.of([b"candidate %d" % number for number in range(candidates)])
    TextEvidence(vocabulary, EPSILON, [ColumnCounts.of(columns[:10])] * 2).figures(texts)  # compile
    began = time.perf_counter()
    halves = [ColumnCounts.of(columns[: reports // 2]), ColumnCounts.of(columns[reports // 2 :])]
    TextEvidence(vocabulary, EPSILON, halves).figures(texts)
    ours = time.perf_counter() - began
    olh = Oracle.OLH.collector(OLH_LABELS, EPSILON)
    sent = Oracle.OLH.lab(OLH_LABELS, EPSILON).perturb(
        rng.integers(OLH_LABELS, size=OLH_REPORTS), rng
    )
    olh.support(sent)  # compile
    began = time.perf_counter()
    olh.support(sent)
    each = (time.perf_counter() - began) / OLH_LABELS / OLH_REPORTS
    return {"decode_seconds": ours, "olh_seconds_extrapolated": each * reports * candidates}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first", type=int, default=SEED, help="the first seed")
    parser.add_argument("--poisoning", action="store_true", help="fake devices, and nothing else")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.poisoning:
        show(poisoning(), as_json=args.json)
        return
    scale = 10 if args.quick else 1
    rows = [
        discovery(seed, 1_000_000 // scale, 1_000_000 // scale)
        for seed in range(args.first, args.first + args.seeds)
    ]
    decoded = decoding(10_000_000 // scale, 1_000_000)
    show([row | decoded for row in rows], as_json=args.json)


def poisoning() -> list[dict[str, Any]]:
    """Return what fake devices come to that know their group."""
    runs = [(TextAttack.NONE, 0.0)]
    runs += [(attack, share) for attack in list(TextAttack)[1:] for share in (0.01, 0.02, 0.05)]
    return [
        asdict(poison(attack, share, users=100_000, epsilon="2", window=5, seed=SEED))
        for attack, share in runs
    ]


def show(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    for row in rows:
        if as_json:
            print(json.dumps(row))
        else:
            print("  ".join(f"{name} {value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
