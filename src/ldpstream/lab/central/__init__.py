"""The references "with a trusted server": Kellaris et al., VLDB 2014, in the laboratory only.

Here users hand their true values to a server that they trust, and the server adds Laplace noise to
what it publishes. That is a different guarantee from the one this package gives, so these are not
in `mechanisms.registry`: no live stream can be run with them.
"""

from ldpstream.lab.central.laplace import LAPLACE, Laplace
from ldpstream.lab.central.mechanisms import CENTRAL, build_central
from ldpstream.lab.central.trusted_fleet import TrustedFleet

__all__ = ["CENTRAL", "LAPLACE", "Laplace", "TrustedFleet", "build_central"]
