"""The common device half of the oracles whose report is a set of labels (`unary` and `subset`)."""

from __future__ import annotations

from ldpstream.errors import MalformedReport, Problem
from ldpstream.oracles.device_half import DeviceHalf
from ldpstream.privacy.epsilon import Epsilon


class BitmapDevice(DeviceHalf[int]):
    """A randomiser whose report is a bitmap of ceil(d/8) bytes: bit v is set if it supports v."""

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        super().__init__(labels, epsilon)
        self.payload_bytes = (labels + 7) // 8

    def supports(self, report: int, label: int) -> bool:
        return report >> label & 1 == 1

    def _edited(self, bitmap: int, label: int, *, clear: bool, flip: bool) -> int:
        """Return the bitmap with one bit cleared if `clear`, then flipped if `flip`.

        It works on bytes: with arithmetic on whole integers, the time would depend on the bit.
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
