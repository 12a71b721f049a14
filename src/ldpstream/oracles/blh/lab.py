from __future__ import annotations

from ldpstream.oracles.local_hash_lab import LocalHashLab


class Lab(LocalHashLab):
    """Each simulated device draws a hash seed of its own."""
