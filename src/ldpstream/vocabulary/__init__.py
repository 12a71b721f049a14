"""Streams of any text: buckets of a public hash, figures for candidates, and their discovery.

A device hashes its text, or a prefix of it, into one of 2^bits - 1 buckets and reports the bucket
by Hadamard response. The collector counts columns of the Hadamard matrix; what it can say of a
text, it reads from their transform. So candidates are its own business: no device hears of them,
and they may be named long after the reports were made.

Importing this package, or its device half, needs the standard library only.
"""

from ldpstream.vocabulary.device import Group, Vocabulary

__all__ = ["Group", "Vocabulary"]
