"""The vectorised hash and its MACs are the same as those of the standard library."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ldpstream.collector.credentials.device_keys import (
    SIDE_BY_SIDE,
    DeviceKeys,
    KeyHolders,
    Signers,
    vectorised_is_right,
)
from ldpstream.collector.kernels.device_table import DeviceTable
from ldpstream.collector.kernels.sha256 import INITIAL, absorb, as_words, padding
from ldpstream.protocol.authentication import report_mac
from ldpstream.protocol.slots import group_of, is_turn, slot_of
from ldpstream.protocol.terms import LONGEST_WINDOW


def codes(
    keys: DeviceKeys, prefix: bytes, devices: NDArray[np.uint8], reports: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """The MACs that the devices would send, one in each row."""
    pairs = zip(devices, reports, strict=True)
    macs = [report_mac(keys.of(one.tobytes()), prefix, report.tobytes()) for one, report in pairs]
    return np.frombuffer(bytearray().join(macs), np.uint8).reshape(-1, 16)


def table(rng: np.random.Generator, rows: int, columns: int) -> NDArray[np.uint8]:
    return rng.integers(0, 256, (rows, columns), np.uint8)


@pytest.mark.parametrize("length", [0, 1, 55, 56, 63, 64, 119, 120, 200])
@pytest.mark.parametrize("rows", [1, 31, 32, 33, 100])
def test_sha256(length: int, rows: int) -> None:
    messages = table(np.random.default_rng(length), rows, length)
    end = np.tile(np.frombuffer(padding(length), np.uint8), (rows, 1))
    states = absorb(INITIAL, as_words(np.concatenate([messages, end], axis=1)))
    found = np.ascontiguousarray(states.T, ">u4")
    expected = [hashlib.sha256(row.tobytes()).digest() for row in messages]
    assert found.tobytes() == b"".join(expected)


@given(
    master=st.binary(min_size=1, max_size=100),
    prefix=st.binary(max_size=150),
    length=st.integers(1, 200),
    rows=st.integers(SIDE_BY_SIDE, 40),
)
def test_codes_of_many_are_the_codes_of_each(
    master: bytes, prefix: bytes, length: int, rows: int
) -> None:
    rng = np.random.default_rng(rows)
    keys = DeviceKeys(master, "stream")
    devices, reports = table(rng, rows, 16), table(rng, rows, length)
    macs = codes(keys, prefix, devices, reports)
    assert Signers(keys, devices).authentic(prefix, macs, reports).all()


@pytest.mark.parametrize("rows", [1, 15, 16, 100])
@pytest.mark.parametrize("part", ["devices", "macs", "reports"])
def test_any_changed_bit_is_noticed(rows: int, part: str) -> None:
    rng = np.random.default_rng(rows)
    keys = DeviceKeys(b"master", "stream")
    given = {"devices": table(rng, rows, 16), "reports": table(rng, rows, 9)}
    given["macs"] = codes(keys, b"prefix", given["devices"], given["reports"])

    def authentic(prefix: bytes) -> NDArray[np.bool_]:
        signers = Signers(keys, given["devices"])
        return signers.authentic(prefix, given["macs"], given["reports"])

    assert authentic(b"prefix").all()
    assert not authentic(b"prefiy").any()
    changed = int(rng.integers(rows))
    given[part][changed, -1] ^= 1
    assert np.flatnonzero(~authentic(b"prefix")).tolist() == [changed]


@pytest.mark.parametrize("rows", [1, 15, 16, 100])
@pytest.mark.parametrize("window", [1, 7, 20, LONGEST_WINDOW])
def test_whose_slot_it_is_can_be_recomputed_for_many(rows: int, window: int) -> None:
    keys = DeviceKeys(b"master", "stream")
    devices = table(np.random.default_rng(rows), rows, 16)
    for t in (1, window, 16 * window, 16 * window + 1, 10**9):
        expected = [is_turn(keys.of(device.tobytes()), window, t) for device in devices]
        assert Signers(keys, devices).are_due(window, t).tolist() == expected
    epoch, own = 3, [keys.of(device.tobytes()) for device in devices]
    slots = Signers(keys, devices).hashes.slots(window, epoch)
    assert slots.tolist() == [slot_of(key, window, epoch) for key in own]


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Forget the result of the kernel's check, as in a new process."""
    vectorised_is_right.cache_clear()
    yield
    vectorised_is_right.cache_clear()


@pytest.mark.usefixtures("unchecked")
def test_a_kernel_that_is_right_is_used(caplog: pytest.LogCaptureFixture) -> None:
    assert vectorised_is_right()
    assert not caplog.records


def _other_bit(states: NDArray[np.uint32]) -> NDArray[np.uint32]:
    states[0, -1] ^= 1  # of the last message only
    return states


def _failing(states: NDArray[np.uint32]) -> NDArray[np.uint32]:
    raise TypeError("the code of another signature")


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("planted", [_other_bit, np.zeros_like, _failing])
def test_a_kernel_that_is_wrong_is_told_and_not_used(
    planted: Callable[[NDArray[np.uint32]], NDArray[np.uint32]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(
        "ldpstream.collector.credentials.device_keys.absorb", lambda *given: planted(absorb(*given))
    )
    keys, rng = DeviceKeys(b"master", "stream"), np.random.default_rng(1)
    devices, reports = table(rng, 100, 16), table(rng, 100, 9)
    macs = codes(keys, b"prefix", devices, reports).copy()
    macs[7, 0] ^= 1
    signers = Signers(keys, devices)
    assert np.flatnonzero(~signers.authentic(b"prefix", macs, reports)).tolist() == [7]
    assert "hmac is used" in caplog.text
    assert caplog.text.count("hmac is used") == 1


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("planted", [None, _other_bit, _failing])
def test_holders_of_keys_compute_the_same_without_the_kernel(
    planted: Callable[[NDArray[np.uint32]], NDArray[np.uint32]] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if planted is not None:
        monkeypatch.setattr(
            "ldpstream.collector.credentials.device_keys.absorb",
            lambda *given: planted(absorb(*given)),
        )
    rng = np.random.default_rng(2)
    keys, reports = table(rng, 40, 32), table(rng, 40, 9)
    own, holders = [key.tobytes() for key in keys], KeyHolders(keys)
    macs = [
        report_mac(key, b"prefix", report.tobytes())
        for key, report in zip(own, reports, strict=True)
    ]
    assert holders.macs(b"prefix", reports).tobytes() == b"".join(macs)
    assert holders.slots(20, 3).tolist() == [slot_of(key, 20, 3) for key in own]
    assert holders.groups(16).tolist() == [group_of(key, 16) for key in own]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5)), max_size=200))
def test_the_device_table_is_a_dict_that_keeps_the_first(pairs: list[tuple[int, int]]) -> None:
    known: dict[int, int] = {}
    found = DeviceTable()
    for first in range(0, len(pairs), 7):
        part = pairs[first : first + 7]
        devices = np.array([[n] * 16 for n, _ in part], np.uint8)
        before = found.add(devices, np.array([value for _, value in part], np.uint64))
        for (number, value), was in zip(part, before.tolist(), strict=True):
            assert was == known.get(number, 0)
            known.setdefault(number, value)
    assert len(found) == len(known)
    everyone = np.array([[n] * 16 for n in range(31)], np.uint8)
    assert found.find(everyone).tolist() == [known.get(n, 0) for n in range(31)]


def test_device_numbers_that_follow_a_pattern_do_not_pile_up() -> None:
    """Devices choose their numbers: sequences in any byte must spread like random ones."""
    for byte in range(16):
        found = DeviceTable()
        devices = np.zeros((256, 16), np.uint8)
        devices[:, byte] = np.arange(256)
        found.add(devices, np.arange(1, 257, dtype=np.uint64))
        used = np.flatnonzero(found._numbers)
        runs = np.split(used, np.flatnonzero(np.diff(used) > 1) + 1)
        # At a load of 1/2 a run of 100 has probability below 1e-9; piled up it would be 256.
        assert max(len(run) for run in runs) < 100
