"""The page of all metrics, from the registry of a collector."""

from __future__ import annotations

from prometheus_client.core import Metric
from prometheus_client.metrics import MetricWrapperBase

from ldpstream.collector.service.meters import Meters
from reference.markdown import code, table
from reference.scene import built_app

INTRODUCTION = """# Metrics

`GET /metrics` of a collector, for Prometheus. How they are read, and who may, is in [the
collector](../collector.md#metrics); deploy/grafana has a dashboard of them.

"""
SUFFIXES = {"counter": "_total", "histogram": "_bucket, _sum, _count"}


def page() -> str:
    """Return the page."""
    with built_app() as app:
        meters: Meters = app.state.service.meters
        labels = _labels_of_instruments(meters)
        rows = [
            (code(one.name), one.type + _suffix(one), _labels(one, labels), one.documentation)
            for one in sorted(meters.registry.collect(), key=lambda one: one.name)
        ]
    return INTRODUCTION + table(("family", "type", "labels", "what it is"), rows)


def _suffix(family: Metric) -> str:
    return f" ({SUFFIXES[family.type]})" if family.type in SUFFIXES else ""


def _labels_of_instruments(meters: Meters) -> dict[str, tuple[str, ...]]:
    found = (one for one in vars(meters).values() if isinstance(one, MetricWrapperBase))
    return {one._name: one._labelnames for one in found}


def _labels(family: Metric, instruments: dict[str, tuple[str, ...]]) -> str:
    """Name the labels of a family; the library shows them nowhere but in series, which are none."""
    names = getattr(family, "_labelnames", None) or instruments[family.name]
    return ", ".join(code(name) for name in names)
