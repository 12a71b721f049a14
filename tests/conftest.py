"""How the tests run: under CI repeatably and without skips, all workers on one cache of kernels."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

UNDER_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")

# Compiling a kernel can fall into any example, so no example has a deadline.
settings.register_profile("dev", deadline=None)
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    max_examples=100,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if UNDER_CI else "dev"))

# Workers, and the programs that they start, compile each kernel once between them: `compiled` lets
# one process at a time add to the cache.
if "PYTEST_XDIST_WORKER" in os.environ:
    kernels = Path(__file__).parents[1] / ".pytest_cache" / "numba"
    os.environ.setdefault("NUMBA_CACHE_DIR", str(kernels))

# A shell without job control starts what runs in the background with Ctrl-C ignored, and whatever
# the tests start would inherit that: a program that is to end at Ctrl-C would never hear of it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class NothingSkipped:
    """Turns a skipped test, or a skipped module, into a failed one."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self,
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.skipped and not hasattr(report, "wasxfail"):
            _fail(report)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self,
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        if report.skipped:
            _fail(report)
        return report


def _fail(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"nothing may be skipped under CI, and this was: {reason}"


def pytest_configure(config: pytest.Config) -> None:
    # As a plugin, since the hooks of this file itself are not called for the doctests in src/.
    if UNDER_CI:
        config.pluginmanager.register(NothingSkipped())
