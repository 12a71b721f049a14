"""What an attacker makes of a transcript: evidence about each secret, from the known randomiser."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from statistics import fmean

from ldpstream.audit.exact import outputs
from ldpstream.audit.world import LABELS, Scenario, Sent
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon


def evidence(scenario: Scenario, wire: Sequence[Sent]) -> list[list[float]]:
    """By target and window: the log likelihood ratio of "1" to "0", from all that it sent then.

    Answers to one round are averaged: of a device that keeps the rules they are the same bytes.
    The releases and the other devices' reports are left aside: given the asks, a device's own
    reports are all that depends on its value.
    """
    answers: defaultdict[tuple[int, int, str], list[float]] = defaultdict(list)
    for one in wire:
        window = scenario.window_of(one.read_ms)
        if window is not None:
            told = ratios(scenario.oracle, one.epsilon_nano)[one.report]
            answers[one.target, window, one.round].append(told)
    found = [[0.0] * scenario.windows for _ in range(scenario.targets)]
    for (target, window, _), told_by in answers.items():
        found[target][window] += fmean(told_by)
    return found


@cache
def ratios(oracle: Oracle, epsilon_nano: int) -> Mapping[bytes, float]:
    """By the bytes on the wire: log Pr[report | "1"] / Pr[report | "0"]."""
    device = oracle.device(len(LABELS), Epsilon(epsilon_nano))
    zero, one = outputs(device, range(len(LABELS)))
    return {report: math.log(one[report] / zero[report]) for report in zero}
