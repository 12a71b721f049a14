"""Without a vulnerability service the audit of dependencies says so, and claims nothing."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "audit_dependencies.py"


@pytest.fixture
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit_dependencies", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_service_in_reach_is_one_line(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nobody = {"pypi": "http://127.0.0.1:9/", "osv": "http://127.0.0.1:9/"}  # the discard port
    monkeypatch.setattr(tool, "SERVICES", nobody)
    tool.main()
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert "nothing was looked up" in said
