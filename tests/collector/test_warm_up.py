"""The warm-up before a collector listens: it runs a timestamp of any stream configuration."""

from __future__ import annotations

import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ldpstream.collector.config import StreamConfig, load
from ldpstream.collector.credentials.device_keys import Signers
from ldpstream.collector.service import warm_up as module
from ldpstream.collector.service.warm_up import warm_up

LABELS = 'labels = ["a", "b", "c"]'


def stream(folder: Path, *lines: str) -> StreamConfig:
    file = folder / "collector.toml"
    usual = ['name = "s"', "epsilon = 1", "window = 4", 'interval = "1h"', "population = 5000"]
    head = ["[collector]", 'listen = "127.0.0.1:0"', 'store = "s.sqlite"', "[[stream]]"]
    file.write_text("\n".join([*head, *usual, *lines]))
    return load(file).streams[0]


@pytest.mark.parametrize(
    ("mechanism", "selection"),
    [("lpf", "slots"), *product(("lpf", "lba", "lsp"), ("open", "roster"))],
)
@pytest.mark.parametrize(
    "values",
    [
        [LABELS],
        [LABELS, 'oracle = "olh"'],
        [LABELS, 'oracle = "oue"'],
        ["range = [0, 10]"],
    ],
    ids=["labels", "hashes", "bits", "numbers"],
)
def test_reports_of_every_kind_are_checked_and_counted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mechanism: str,
    selection: str,
    values: list[str],
) -> None:
    checked: list[bool] = []

    honest = Signers.authentic

    def watching(*given: Any) -> NDArray[np.bool_]:
        found = honest(*given)
        checked.append(bool(found.all()))
        return found

    monkeypatch.setattr(Signers, "authentic", watching)
    given = [*values, f'mechanism = "{mechanism}"', f'selection = "{selection}"']
    warm_up([stream(tmp_path, *given)])
    assert len(checked) >= 2
    assert all(checked)


def test_one_stream_of_a_kind_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played = []
    monkeypatch.setattr(module, "_play", lambda one, store: played.append(one.selection))
    given = [stream(tmp_path, LABELS, f'selection = "{kind}"') for kind in ("open", "roster")]
    warm_up(given * 3)
    assert played == ["open", "roster"]


def test_a_collector_starts_where_there_is_no_folder_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    warm_up([stream(tmp_path, LABELS)])
    assert "no warm-up" in caplog.text
