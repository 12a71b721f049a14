"""What runs on a device: the randomisers, their epsilon and their randomness.

Needs the standard library only: a device has neither NumPy nor the collector.

>>> grr = Oracle.GRR.device(labels=4, epsilon=Epsilon.of(1))
>>> len(grr.encode(grr.perturb(2, SystemSource())))
2
"""

from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.randomness import SystemSource

__all__ = ["Epsilon", "Oracle", "SystemSource"]
