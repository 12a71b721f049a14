"""The metrics that are read from a running service when they are scraped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ldpstream.collector.alerts.conditions import ConditionKind
from ldpstream.collector.alerts.state import AlertState
from ldpstream.collector.config import StreamConfig
from ldpstream.collector.reports.verdicts import Verdict
from ldpstream.collector.service.condition import StreamCondition, StreamState
from ldpstream.collector.service.service import Service
from ldpstream.collector.service.stream_service import StreamService
from ldpstream.collector.store.contract import StoredRelease
from ldpstream.collector.store.groups import GROUPS

_GAUGES = {
    "epsilon": "No device spends more than this in any window.",
    "window": "The window, in timestamps.",
    "interval_seconds": "The length of a timestamp.",
    "population": "How many devices are expected.",
    "population_low": "Lower end of the interval of a population that follows the fleet (0.9).",
    "population_high": "Upper end of the interval of a population that follows the fleet (0.9).",
    "failing": "1 while the stream cannot continue.",
    "behind_seconds": "How late the next release is due to an engine or the store; otherwise 0.",
    "engine_alive": "1 while an engine that counts the stream's reports shows that it is alive.",
    "engine_lag_messages": "Messages of rounds that are over, which no engine has counted yet.",
    "conducting": "1 while this collector leads the stream.",
    "clock_ahead_seconds": "How far the machine's clock is ahead of the time confirmed; usually 0.",
    "long_polls_waiting": "Requests that wait for the next round.",
    "last_timestamp": "The last timestamp released.",
    "seconds_since_release": "Seconds since the last release.",
    "devices_heard": "At least how many distinct devices reported in the last window.",
    "earlier_keys_good": "1 while keys of the earlier master secret are valid.",
    "master_unknown": "1 while the store has a master secret that this collector does not have.",
    "denied_devices": "Devices on the stream's deny list.",
    "reports_with_earlier_keys": "Reports since the last window began with a key of the earlier "
    "master secret; with slots each is another device.",
    "suspect_rounds": "Rounds of the last release that do not look like honest devices' work.",
}
_POPULATION = {"population_low": "expected_low", "population_high": "expected_high"}
_FREQUENCIES = {
    "frequency": ("values", "Released frequency of the largest labels."),
    "frequency_low": ("low", "Lower end of the released interval (0.9)."),
    "frequency_high": ("high", "Upper end of the released interval (0.9)."),
}


class ServiceState(Collector):
    """The metric families without an instrument: other objects keep their figures.

    Collected on the event loop, which is also where the counters of reports are written.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._shown: dict[str, tuple[StoredRelease, list[int]]] = {}

    def collect(self) -> Iterator[Metric]:
        conditions = dict(self._service.conditions())
        yield from self._gauges(conditions)
        yield self._states(conditions)
        yield self._reports()
        yield self._requests_refused()
        yield self._keys_renewed()
        yield self._alerts()
        yield from self._kinds_of_alerts()
        yield from self._frequencies()

    def describe(self) -> Iterable[Metric]:
        """Return nothing: families are collected when someone asks, not when this is registered."""
        return ()

    def _states(self, conditions: Mapping[str, StreamCondition]) -> Metric:
        family = GaugeMetricFamily(
            "ldpstream_stream_state",
            "1 for the state that the stream is in, 0 for all others.",
            labels=("stream", "state"),
        )
        for name, condition in conditions.items():
            for state in StreamState:
                family.add_metric((name, state.value), condition.state is state)
        return family

    def _gauges(self, conditions: Mapping[str, StreamCondition]) -> Iterator[Metric]:
        families = {
            name: GaugeMetricFamily(f"ldpstream_{name}", about, labels=("stream",))
            for name, about in _GAUGES.items()
        }
        info = GaugeMetricFamily(
            "ldpstream_stream_info",
            "Always 1; what the stream is made of.",
            labels=("stream", "mechanism", "oracle", "selection"),
        )
        for name, stream in self._service.streams.items():
            for key, number in self._numbers(stream, conditions[name]).items():
                families[key].add_metric((name,), number)
            kinds = (stream.config.mechanism, stream.terms.oracle, stream.config.selection)
            info.add_metric((name, *map(str, kinds)), 1)
        yield from families.values()
        yield info

    def _numbers(self, stream: StreamService, condition: StreamCondition) -> dict[str, float]:
        name, terms, doubt = stream.config.name, stream.terms, self._service.clock.doubt
        numbers: dict[str, float] = {
            "epsilon": terms.epsilon.nano / 1e9,
            "window": terms.window,
            "interval_seconds": terms.interval_ms / 1000,
            "population": stream.population,
            "failing": condition.state is StreamState.FAILING,
            "behind_seconds": condition.behind_ms / 1000,
            "conducting": self._service.held(name) is not None,
            "clock_ahead_seconds": 0 if doubt is None else doubt.ahead_ms / 1000,
            "long_polls_waiting": stream.hub.waiting,
            "last_timestamp": stream.hub.last_t,
            "earlier_keys_good": self._service.ring.masters.valid,
            "master_unknown": self._service.ring.is_behind,
            "denied_devices": len(stream.intake.denied()),
            "reports_with_earlier_keys": stream.intake.earlier_since(
                stream.hub.last_t - terms.window
            ),
        }
        if stream.engine is not None:
            numbers["engine_alive"] = stream.engine.alive
            numbers["engine_lag_messages"] = stream.engine.waiting
        latest = stream.hub.latest
        if latest is not None:
            past = self._service.clock.now_ms() - latest.at_ms
            numbers["seconds_since_release"] = max(past, 0) / 1000
            numbers["suspect_rounds"] = len(latest.content.get("suspect", ()))
            if "devices" in latest.content:
                devices = latest.content["devices"]
                numbers["devices_heard"] = devices["heard"]
                for key, end in _POPULATION.items():
                    if end in devices:
                        numbers[key] = devices[end]
        return numbers

    def _reports(self) -> Metric:
        family = CounterMetricFamily(
            "ldpstream_reports",
            "Reports by what became of them; refused ones have a reason.",
            labels=("stream", "outcome", "reason"),
        )
        for name, stream in self._service.streams.items():
            outcomes = stream.intake.outcomes
            family.add_metric((name, "accepted", ""), outcomes[Verdict.ACCEPTED])
            family.add_metric((name, "repeated", ""), outcomes[Verdict.REPEATED])
            refused = stream.refused.copy()
            for verdict, number in outcomes.items():
                if verdict.refusal is not None:
                    refused[verdict.refusal] += number
            for problem, number in refused.items():
                family.add_metric((name, "refused", problem.code), number)
        return family

    def _requests_refused(self) -> Metric:
        family = CounterMetricFamily(
            "ldpstream_requests_refused",
            "Enrolments and other requests without reports that were refused, by reason.",
            labels=("stream", "reason"),
        )
        for name, stream in self._service.streams.items():
            for problem, number in stream.refused_requests.copy().items():
                family.add_metric((name, problem.code), number)
        return family

    def _keys_renewed(self) -> Metric:
        family = CounterMetricFamily(
            "ldpstream_keys_renewed", "Device keys that were renewed.", labels=("stream",)
        )
        for name, stream in self._service.streams.items():
            family.add_metric((name,), stream.renewed)
        return family

    def _alerts(self) -> Metric:
        family = GaugeMetricFamily(
            "ldpstream_alerts", "Alerts in each state.", labels=("stream", "state")
        )
        for name, evaluator in self._service.evaluators.items():
            states = [alert.state for alert in evaluator.alerts.values()]
            for state in AlertState:
                family.add_metric((name, state.value), states.count(state))
        return family

    def _kinds_of_alerts(self) -> Iterator[Metric]:
        firing = GaugeMetricFamily(
            "ldpstream_alerts_firing", "Alerts that fire, by kind.", labels=("stream", "kind")
        )
        silenced = GaugeMetricFamily(
            "ldpstream_alerts_silenced", "Rules that are silenced.", labels=("stream",)
        )
        for name, evaluator in self._service.evaluators.items():
            alerts = evaluator.shown
            kinds = [rule.condition.kind for rule, one in alerts if one.state is AlertState.FIRING]
            for kind in ConditionKind:
                firing.add_metric((name, kind.value), kinds.count(kind))
            quiet = sum(evaluator.silence_of(rule) is not None for rule, _ in alerts)
            silenced.add_metric((name,), quiet)
        return iter((firing, silenced))

    def _frequencies(self) -> Iterator[Metric]:
        families = {
            name: GaugeMetricFamily(f"ldpstream_{name}", about, labels=("stream", "label"))
            for name, (_, about) in _FREQUENCIES.items()
        }
        for name, stream in self._service.streams.items():
            latest = stream.hub.latest
            if latest is None:
                continue
            names = stream.names.at(latest)
            places = self._places(stream.config, names, latest)
            for group, figures in _parts(latest):
                for place, (key, (part, _)) in product(places, _FREQUENCIES.items()):
                    labels = {"stream": name, "label": names[place], **group}
                    families[key].add_sample(f"ldpstream_{key}", labels, figures[part][place])
        yield from families.values()

    def _places(
        self, config: StreamConfig, names: Sequence[str], latest: StoredRelease
    ) -> list[int]:
        """Return the places of the labels to show, which are looked for once for each release."""
        known = self._shown.get(config.name)
        if known is None or known[0] is not latest:
            places = shown(config, names, latest, self._service.config.limits.metric_labels)
            known = self._shown[config.name] = latest, places
        return known[1]


def _parts(release: StoredRelease) -> Iterator[tuple[dict[str, str], Mapping[str, Any]]]:
    """Yield the figures of the whole fleet, and those of its groups with labels of their own."""
    yield {}, release.content
    for one in release.content.get(GROUPS, ()):
        yield {"attribute": one["attribute"], "group": one["value"]}, one


def shown(
    config: StreamConfig, names: Sequence[str], release: StoredRelease, most: int
) -> list[int]:
    """Return the places of the labels that get series: those with a threshold, then the largest."""
    values = release.content["values"]

    def order(place: int) -> tuple[bool, float, int]:
        return names[place] not in config.thresholds, -values[place], place

    return sorted(range(len(values)), key=order)[:most]
