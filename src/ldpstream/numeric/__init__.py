"""Randomisers of numbers: each is a folder with a device, a collector and a laboratory half.

A number is one of equally spaced levels of a public range (`range.py`), so that a device computes
in exact integers. Importing this package, or a device half, needs the standard library only.
"""

from ldpstream.numeric.choice import choose_mean
from ldpstream.numeric.range import BinnedRange, Range
from ldpstream.numeric.registry import Numeric

__all__ = ["BinnedRange", "Numeric", "Range", "choose_mean"]
