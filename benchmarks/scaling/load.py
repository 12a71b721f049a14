"""The load of benchmarks/ingest.py, re-exported."""

from ingest import BATCH, LABELS, send_all, signed, singles

__all__ = ["BATCH", "LABELS", "send_all", "signed", "singles"]
