"""A Spark session that suits the job: few rows, each of many records."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from ldpstream.engines.spark import daemon

PASSED_ON = ("PYTHONPATH", "NUMBA_CACHE_DIR")
"""Environment variables that executors get, too."""


def session(master: str) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("ldpstream")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.daemon.module": daemon.__name__,
        "spark.sql.execution.arrow.maxRecordsPerBatch": "64",  # a row has up to 512 KB
        "spark.sql.adaptive.enabled": "false",  # it would merge small partitions
        "spark.sql.streaming.pollingDelay": "100ms",
        "spark.log.level": "ERROR",
    } | {f"spark.executorEnv.{name}": os.environ[name] for name in PASSED_ON if name in os.environ}
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
