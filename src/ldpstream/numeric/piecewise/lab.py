from __future__ import annotations

from ldpstream.numeric.band_lab import BandLab


class Lab(BandLab):
    """Simulated devices of the piecewise mechanism."""
