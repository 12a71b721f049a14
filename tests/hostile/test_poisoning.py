"""Fake devices: what they gain is what theory says, and what is meant to help does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.arrays import Counts
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import StreamConfig, Suspicion
from ldpstream.collector.reports.records import Records
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.mechanisms.division import PopulationDivision
from ldpstream.mechanisms.messages import Purpose
from ldpstream.oracles import Oracle
from ldpstream.oracles.gain import Gain, choose_robust
from ldpstream.oracles.shape import BitCount, FreshSeeds, bit_count_distribution, shape_of
from ldpstream.privacy.enumeration import distribution
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.terms import SelectionMethod
from tests.collector.api import running
from tests.collector.helpers import SECRETS, START_MS, device_of, stream_config
from tests.hostile.poisoning.attacks import Attack, Attacker
from tests.hostile.poisoning.events import EventOutcome, Scheme, WatchedStream, attack_event
from tests.hostile.poisoning.fleet import AttackPlan, Campaign
from tests.hostile.poisoning.rounds import Setting, poison
from tests.hostile.poisoning.streams import poison_stream
from tests.hostile.turns import turns_of
from tests.waiting import eventually

EPSILON = Epsilon.of(1)
LABELS = 32
SHARE = 0.05
SIGMAS = 6.0
"""Pr[a normal estimate is further off] < 2e-9, times 14 tests: below 1e-6."""


@pytest.mark.parametrize("oracle", Oracle)
@pytest.mark.parametrize("attack", [Attack.CAMOUFLAGED, Attack.LIE])
def test_the_gain_of_fakes_is_that_of_the_theory(oracle: Oracle, attack: Attack) -> None:
    setting, repeats = Setting(), 20
    found = poison(setting, oracle, attack, SHARE, repeats, seed=1)
    gain = Gain.of(oracle, setting.labels, setting.epsilon)
    truth = setting.truth[setting.target]
    reach = gain.raising if attack is Attack.CAMOUFLAGED else 1.0
    # Whether a report supports the target is a coin: its variance is at most 1/4.
    device = oracle.device(setting.labels, setting.epsilon)
    error = 0.5 / float(device.p - device.q) / np.sqrt(setting.users * repeats)
    assert abs(found.bias - SHARE * (reach - truth)) < SIGMAS * error


class TestGreedy:
    """Ten fakes among 1,000 devices, w = 20: what it is worth to ignore coin and ledger."""

    WINDOW, EPOCH = 20, 320

    def reports(self, selection: SelectionMethod, greedy: bool) -> tuple[Counts, Counts]:
        """Return the honest and the fake reports of each timestamp of two epochs."""
        division = PopulationDivision(EPSILON, 1000, self.WINDOW)
        turns = turns_of(selection, division, 10, np.random.default_rng(8), greedy=greedy)
        ask = division.ask(50, Purpose.PUBLICATION)
        rows = [turns.reporting(t, ask) for t in range(1, 2 * self.EPOCH + 1)]
        honest, faked = np.array(rows).T
        return honest, faked

    @pytest.mark.parametrize("selection", SelectionMethod)
    def test_obeying_fakes_report_once_in_a_window(self, selection: SelectionMethod) -> None:
        honest, faked = self.reports(selection, greedy=False)
        assert 0.005 < faked.sum() / (honest + faked).sum() < 0.015
        if selection is not SelectionMethod.ROSTER:  # whose turns are drawn round by round here
            windows = np.lib.stride_tricks.sliding_window_view(faked, self.WINDOW)
            assert windows.sum(axis=1).max() <= 10

    def test_with_open_selection_each_weighs_as_much_as_w_honest_devices(self) -> None:
        honest, faked = self.reports(SelectionMethod.OPEN, greedy=True)
        assert (faked == 10).all()
        assert (faked / (honest + faked)).mean() > 0.15

    def test_a_roster_asks_a_greedy_fake_no_more_often(self) -> None:
        _, faked = self.reports(SelectionMethod.ROSTER, greedy=True)
        _, obeying = self.reports(SelectionMethod.ROSTER, greedy=False)
        assert (faked == obeying).all()

    def test_with_slots_each_has_one_turn_in_a_window_and_the_gain_is_the_documented_one(
        self,
    ) -> None:
        """Where slots change, too: turns are at least a window apart, whoever has them."""
        honest, faked = self.reports(SelectionMethod.SLOTS, greedy=True)
        assert (faked.reshape(-1, self.WINDOW).sum(axis=1) <= 10).all()
        gain = Gain.of(Oracle.GRR, 2, EPSILON).raising
        share = faked.sum() / (honest + faked).sum()
        assert share * (gain - 0.25) < 0.01 * gain
        obeying = self.reports(SelectionMethod.SLOTS, greedy=False)
        assert np.array_equal((honest, faked), obeying)


def test_normalisation_alone_is_no_cure() -> None:
    found = poison(Setting(), Oracle.OUE, Attack.CAMOUFLAGED, SHARE, 10, seed=2)
    assert found.bias_normalised > 0.9 * found.bias


def test_one_report_a_device_and_round_matters() -> None:
    """One in a hundred that may send ten times is as bad as nearly ten in a hundred."""
    once = poison(Setting(), Oracle.OUE, Attack.CAMOUFLAGED, 0.01, 10, seed=3)
    often = poison(Setting(), Oracle.OUE, Attack.CAMOUFLAGED, 0.01, 10, seed=3, copies=10)
    assert often.bias > 6 * once.bias > 0


def test_the_robust_oracle_bounds_what_a_fake_can_do() -> None:
    for labels in (4, 32, 128):
        chosen = Gain.of(choose_robust(labels, EPSILON), labels, EPSILON)
        gains = [Gain.of(oracle, labels, EPSILON) for oracle in Oracle]
        assert chosen.noise <= 1.5 * min(gain.noise for gain in gains)
        assert chosen.worst <= min(gain.worst for gain in gains if gain.noise <= chosen.noise)


def test_the_distribution_of_bits_is_that_of_real_reports() -> None:
    """The whole output distribution of a small device half, enumerated, for every value."""
    device = Oracle.OUE.device(4, EPSILON)
    expected = bit_count_distribution(4, float(device.p), float(device.q))
    for value in range(4):
        bits = np.zeros(5)
        for report, chance in distribution(partial(device.perturb, value)).items():
            bits[report.bit_count()] += float(chance)
        assert np.allclose(bits, expected, atol=1e-12)


def test_honest_rounds_set_off_no_alarm() -> None:
    """2,000 rounds at a false-alarm rate of 1e-10: a failure has probability below 1e-6."""
    rng = np.random.default_rng(4)
    lab = Oracle.OUE.lab(LABELS, EPSILON)
    for number in range(2000):
        shape = BitCount(Oracle.OUE.device(LABELS, EPSILON))
        shape.see(lab.perturb(rng.integers(1 + number % LABELS, size=500), rng))
        assert shape.p_value() > 1e-10


@pytest.mark.parametrize(
    ("oracle", "attack"),
    [
        (Oracle.OUE, Attack.MAXIMAL_GAIN),
        (Oracle.SUE, Attack.MAXIMAL_GAIN),
        (Oracle.OLH, Attack.MAXIMAL_GAIN),
        (Oracle.OUE, Attack.RANDOM_REPORT),
    ],
)
def test_crude_attacks_set_off_the_alarm(oracle: Oracle, attack: Attack) -> None:
    assert poison(Setting(), oracle, attack, SHARE, 5, seed=5).alarms == 1.0


def test_what_leaves_no_trace_is_not_seen() -> None:
    """Said in docs/trust.md: the alarm is no proof of honesty."""
    assert poison(Setting(), Oracle.OUE, Attack.LIE, 0.1, 5, seed=6).alarms == 0.0
    assert shape_of(Oracle.GRR.device(LABELS, EPSILON)) is None


def test_seeds_that_come_twice_are_seen_across_batches() -> None:
    device: Any = Oracle.OLH.device(LABELS, EPSILON)
    shape = FreshSeeds(device)
    rows = np.arange(300, dtype=np.uint32).reshape(100, 3)
    shape.see(rows)
    assert shape.p_value() == 1.0
    shape.see(rows[:1])
    assert shape.p_value() < 1e-12


def test_fakes_force_and_suppress_publications() -> None:
    honest = poison_stream("lpa", AttackPlan(Campaign.NOTHING, 0.0), repeats=4)
    forced = poison_stream("lpa", AttackPlan(Campaign.FORCE, 0.1, target=15), repeats=4)
    suppressed = poison_stream("lpa", AttackPlan(Campaign.SUPPRESS, 0.1), repeats=4)
    assert forced.publications > 1.5 * honest.publications
    assert suppressed.publications < honest.publications


class TestEvents:
    """A coalition of one in twenty, against an event in a fleet of 20,000."""

    WATCHED = WatchedStream(users=20_000, timestamps=60, first=31, last=50, window=10)

    def seen(self, mechanism: str, scheme: Scheme, share: float) -> EventOutcome:
        found = attack_event(mechanism, scheme, share, watched=self.WATCHED, repeats=3)
        assert found is not None
        return found

    def test_an_event_is_faked_and_hidden(self) -> None:
        assert self.seen("lpf", Scheme.FAKE, 0.0).seen < 0.1
        assert self.seen("lpf", Scheme.FAKE, 0.1).seen > 0.7
        assert self.seen("lpf", Scheme.HIDE, 0.0).seen > 0.8
        assert self.seen("lbu", Scheme.HIDE, 0.1).seen < 0.2

    def test_the_faked_share_is_that_of_the_theory(self) -> None:
        """While it lasts, LPU is off by b((1-q)/(p-q) - f)."""
        gain = Gain.of(Oracle.GRR, 2, EPSILON).raising
        off = 0.1 * (gain - self.WATCHED.usual)
        noise = self.seen("lpu", Scheme.FAKE, 0.0).mse
        assert self.seen("lpu", Scheme.FAKE, 0.1).mse == pytest.approx(off**2 + noise, rel=0.25)

    def test_budget_is_wasted_on_nothing(self) -> None:
        for mechanism in ("lpa", "lpd", "rescuedp"):
            honest = self.seen(mechanism, Scheme.WASTE, 0.0).publications
            assert self.seen(mechanism, Scheme.WASTE, 0.1).publications > honest

    def test_who_decides_nothing_cannot_be_bent(self) -> None:
        for mechanism in ("lbu", "lsp", "lpu", "lpf"):
            assert attack_event(mechanism, Scheme.WASTE, 0.1) is None
            assert attack_event(mechanism, Scheme.FREEZE, 0.1) is None

    def test_fakes_are_innocent_before_and_after(self) -> None:
        plan = AttackPlan(Campaign.RAISE, 0.1, target=15, first=20, last=20)
        once = poison_stream("lpu", plan, repeats=4)
        before = replace(plan, first=60, last=60)
        assert once.bias > 0.2 < poison_stream("lpu", before, repeats=4).bias
        assert once.mse < poison_stream("lpu", replace(plan, first=1, last=None), repeats=4).mse


# In the collector


class Stream:
    """A coordinator on a clock that is moved by hand, with devices that send chosen reports."""

    def __init__(self, config: StreamConfig, file: Path) -> None:
        self.config = config
        self.clock = ManualClock(START_MS)
        self.store = SqliteStore(file, SECRETS.master)
        self.start()

    def start(self) -> None:
        self.coordinator = Coordinator(self.config, self.store, self.clock)

    def go_on(self, attack: Attack | None) -> dict[str, Any]:
        """One timestamp with 1,500 reports, a third of them fake; its release."""
        self.coordinator.advance()
        asking = self.coordinator.open
        assert asking is not None
        device = asking.collector.device
        rng = np.random.default_rng(asking.stored.t)
        values = rng.integers(device.labels, size=1000)
        lab = Oracle.OUE.lab(device.labels, device.epsilon)
        attacker = Attacker(Oracle.OUE, device.labels, device.epsilon)
        faked = attacker.reports(attack or Attack.LIE, rng.integers(device.labels, size=500), rng)
        words = np.concatenate([lab.perturb(values, rng), faked])[:, 0].tolist()
        packed = b"".join(
            device_of(number) + number.to_bytes(16, "big") + device.encode(word)
            for number, word in enumerate(words, 1)
        )
        self.store.accept("a", asking.name, Records.of(packed, device.report_bytes))
        self.clock.advance_to(asking.stored.deadline_ms)
        self.coordinator.advance()
        released = self.store.releases("a", self.coordinator.last_t, 1)[0].to_json()
        self.clock.advance_to(self.coordinator.advance())
        return released


@pytest.fixture
def oue(tmp_path: Path) -> Iterator[Stream]:
    labels = [f"l{number}" for number in range(LABELS)]
    config = stream_config(tmp_path, labels=labels, oracle="oue", mechanism="lpu", population=6000)
    stream = Stream(config, tmp_path / "c.sqlite")
    with closing(stream.store):
        yield stream


def test_a_release_says_that_its_round_was_suspect(oue: Stream) -> None:
    assert "suspect" not in oue.go_on(None)
    assert oue.go_on(Attack.MAXIMAL_GAIN)["suspect"] == ["2-publication"]
    oue.start()  # what is suspect outlives a restart, and no release inherits it
    assert oue.coordinator._suspects.among(["1-publication", "2-publication"]) == ["2-publication"]
    assert "suspect" not in oue.go_on(None)


def test_a_suspect_round_can_be_left_out(oue: Stream) -> None:
    oue.config = replace(oue.config, suspicion=Suspicion(discard=True))
    oue.start()
    first, second = oue.go_on(None), oue.go_on(Attack.MAXIMAL_GAIN)
    assert second["values"] == first["values"]
    assert not second["fresh"]
    assert second["received"] == 1500


def test_the_alarm_can_be_turned_off(oue: Stream) -> None:
    oue.config = replace(oue.config, suspicion=Suspicion(false_alarm=0))
    oue.start()
    assert "suspect" not in oue.go_on(Attack.MAXIMAL_GAIN)


def test_the_file_can_ask_for_a_robust_oracle(tmp_path: Path) -> None:
    labels = [f"l{number}" for number in range(LABELS)]
    config = stream_config(tmp_path, labels=labels, oracle="robust", population=6000)
    assert config.oracle is Oracle.HADAMARD


def test_status_metrics_and_releases_show_the_alarm(tmp_path: Path) -> None:
    """Over HTTP: 600 signed reports of the same number of bits, by 600 enrolled fakes."""
    labels = [f"l{number}" for number in range(LABELS)]
    with running(tmp_path, labels=labels, oracle="oue", population=2400) as api:
        asking = api.asking()
        device = asking.collector.device
        report = device.encode(0xFF)
        body = b"".join(api.signer(number).record(asking, report) for number in range(1, 601))
        assert api.post_batch(asking, body).json()["accepted"] == 600
        api.pass_time(9_000)
        eventually(lambda: api.service.streams["a"].hub.last_t == 1)
        assert api.client.get("/v1/streams/a/status").json()["suspect"] == ["1-publication"]
        assert 'ldpstream_suspect_rounds{stream="a"} 1.0' in api.client.get("/metrics").text
        (release,) = api.client.get("/v1/streams/a/releases").json()["releases"]
        assert release["suspect"] == ["1-publication"]
