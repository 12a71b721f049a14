"""The attacker, who computes evidence about each secret from a transcript."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from statistics import fmean
from typing import Any

from ldpstream.audit.exact import outputs
from ldpstream.audit.world import LABELS, Scenario, SentReport
from ldpstream.oracles import Oracle
from ldpstream.oracles.device_half import Randomiser
from ldpstream.oracles.hadamard.device import Device as HadamardDevice
from ldpstream.oracles.tagged.device import Tagged
from ldpstream.privacy.epsilon import Epsilon


def evidence(scenario: Scenario, wire: Sequence[SentReport]) -> list[list[float]]:
    """Return, by target and window, the log likelihood ratio of "1" to "0" from all reports.

    Answers to one round are averaged: a device that keeps the rules sends the same bytes. Releases
    and other devices' reports are ignored: given the asks, only a device's own reports depend on
    its value.
    """
    answers: defaultdict[tuple[int, int, str], list[float]] = defaultdict(list)
    for one in wire:
        window = scenario.window_of(one.read_ms)
        if window is not None:
            told = _told(scenario, one)
            answers[one.target, window, one.round].append(told)
    found = [[0.0] * scenario.windows for _ in range(scenario.targets)]
    for (target, window, _), told_by in answers.items():
        found[target][window] += fmean(told_by)
    return found


def _told(scenario: Scenario, sent: SentReport) -> float:
    """Return log Pr[report | "1"] / Pr[report | "0"]."""
    if scenario.words is None:
        return ratios(scenario.oracle, sent.epsilon_nano, scenario.tags)[sent.report]
    words, tag = scenario.words, sent.report[-1]
    inner = HadamardDevice(len(words), Epsilon(sent.epsilon_nano))
    column = Tagged(inner, len(words.groups)).decode(sent.report)
    no, yes = (inner.supports(column, words.bucket(label, words.groups[tag])) for label in LABELS)
    return (yes - no) * math.log(inner.p / (1 - inner.p))


@cache
def ratios(oracle: Oracle, epsilon_nano: int, tags: int = 0) -> Mapping[bytes, float]:
    """Return log Pr[report | "1"] / Pr[report | "0"], by the bytes of the report and its tag."""
    inner = oracle.device(len(LABELS), Epsilon(epsilon_nano))
    found: dict[bytes, float] = {}
    seen: list[Randomiser[Any]] = [Tagged(inner, tags, tag) for tag in range(tags)]
    for device in seen or [inner]:
        zero, one = outputs(device, range(len(LABELS)))
        found |= {report: math.log(one[report] / zero[report]) for report in zero}
    return found
