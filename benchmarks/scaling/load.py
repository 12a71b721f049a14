"""The load of benchmarks/ingest.py, under names of our own."""

from ingest import BATCH, LABELS, send_all, signed, singles

__all__ = ["BATCH", "LABELS", "send_all", "signed", "singles"]
