"""What the oracles whose report is a set of labels share on the device: `unary` and `subset`."""

from __future__ import annotations

from ldpstream.errors import MalformedReport, Problem
from ldpstream.oracles.device_half import DeviceHalf
from ldpstream.privacy.epsilon import Epsilon


class BitmapDevice(DeviceHalf[int]):
    """A report is a bitmap: bit v says whether it supports label v. ceil(d/8) bytes."""

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        super().__init__(labels, epsilon)
        self.payload_bytes = (labels + 7) // 8

    def supports(self, report: int, label: int) -> bool:
        return report >> label & 1 == 1

    def _edited(self, bitmap: int, label: int, *, clear: bool, flip: bool) -> int:
        """The bitmap with one bit cleared, then flipped, or not.

        By bytes: arithmetic on whole integers takes longer the higher the bit is.
        """
        edited = bytearray(bitmap.to_bytes(self.payload_bytes, "little"))
        place, mask = label >> 3, 1 << (label & 7)
        edited[place] = edited[place] & ~(mask * clear) ^ mask * flip
        return int.from_bytes(edited, "little")

    def _pack(self, report: int) -> int:
        return report

    def _unpack(self, packed: int) -> int:
        padding = packed >> self.labels
        if padding:
            raise MalformedReport(
                Problem.REPORT_RANGE, field="padding", given=padding, expected="zero"
            )
        return packed
