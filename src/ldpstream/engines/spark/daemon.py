"""Spark's daemon of Python workers, with all that tasks need loaded before it forks them.

A worker that is forked from it starts in milliseconds; one that has to load Numba takes seconds.
"""

from __future__ import annotations

from pyspark.daemon import manager

import ldpstream.engines.spark.source
import ldpstream.engines.spark.tasks  # noqa: F401

if __name__ == "__main__":
    manager()
