"""Frequency oracles: each family is a folder with a device, a collector and a laboratory half.

Importing this package, or a device half, needs the standard library only.
"""

from ldpstream.oracles.choice import choose
from ldpstream.oracles.registry import Oracle

__all__ = ["Oracle", "choose"]
