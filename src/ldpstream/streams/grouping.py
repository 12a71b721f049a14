"""Grouping of a table of any length, in memory that grows with the number of groups only."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

BATCH = 1 << 18


def grouped(
    frame: pl.LazyFrame,
    key: str,
    *merges: pl.Expr,
    done: Callable[[int], None] = lambda rows: None,
) -> pl.DataFrame:
    """Group by a column; the merges (min, max, sum) are applied to rows, then to their results.

    If there are many groups, Polars' own streaming group_by keeps every row until the end.

    >>> table = pl.LazyFrame({"k": ["a", "b", "a"], "n": [1, 1, 1]})
    >>> grouped(table, "k", pl.col("n").sum()).sort("k").rows()
    [('a', 2), ('b', 1)]
    """
    parts: list[pl.DataFrame] = []
    waiting, groups, rows = 0, 0, 0
    for batch in frame.collect_batches(chunk_size=BATCH, maintain_order=False):
        rows += len(batch)
        done(rows)
        parts.append(batch.group_by(key).agg(merges))
        waiting += len(parts[-1])
        if waiting > 4 * BATCH + groups:  # not at once: each merge goes through all groups
            parts = [pl.concat(parts).group_by(key).agg(merges)]
            waiting, groups = 0, len(parts[0])
    if not parts:
        return frame.collect().group_by(key).agg(merges)
    return pl.concat(parts).group_by(key).agg(merges)
