"""The load of benchmarks/ingest.py, re-exported."""

from ingest import BATCH, LABELS, pin_of, send_all, signed, singles

__all__ = ["BATCH", "LABELS", "pin_of", "send_all", "signed", "singles"]
