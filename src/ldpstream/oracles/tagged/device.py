from __future__ import annotations

from ldpstream.oracles.device_half import Randomiser, Report, check_range
from ldpstream.privacy.randomness import Source

MOST_TAGS = 256
"""A tag is one byte."""


class Tagged(Randomiser[Report]):
    """A randomiser whose reports end with a tag of the device, which is public and not private.

    The tag does not depend on the value, so the odds are those of the randomiser within.

    >>> from ldpstream.oracles.hadamard.device import Device
    >>> from ldpstream.privacy.epsilon import Epsilon
    >>> tagged = Tagged(Device(1000, Epsilon.of(1)), tags=6, tag=5)
    >>> tagged.encode(513).hex(), tagged.decode(tagged.encode(513)), tagged.report_bytes
    ('01010205', 513, 4)
    """

    def __init__(self, inner: Randomiser[Report], tags: int, tag: int = 0) -> None:
        if not 0 <= tag < tags <= MOST_TAGS:
            raise ValueError(f"tag {tag} of {tags}")
        self.inner, self.tags, self.tag = inner, tags, tag
        self.labels, self.epsilon = inner.labels, inner.epsilon  # checked there
        self.worst_ratio = inner.worst_ratio
        self.payload_bytes = inner.payload_bytes + 1

    def _perturb(self, value: int, source: Source) -> Report:
        return self.inner.perturb(value, source)

    def _pack(self, report: Report) -> int:
        return self.inner._pack(report) | self.tag << self._shift

    def _unpack(self, packed: int) -> Report:
        check_range("tag", packed >> self._shift, self.tags)
        return self.inner._unpack(packed & (1 << self._shift) - 1)

    @property
    def _shift(self) -> int:
        return 8 * self.inner.payload_bytes
