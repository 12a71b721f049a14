"""Measure what fake devices can do, by oracle and mechanism, and what mitigations gain and cost.

.venv/bin/python benchmarks/poisoning.py [--greedy | --over-time] [--repeats N] [--json] [--write]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ldpstream.collector.config import Limits
from ldpstream.mechanisms.division import Division
from ldpstream.mechanisms.registry import PAPER, names
from ldpstream.oracles import Oracle
from ldpstream.oracles.choice import choose
from ldpstream.oracles.gain import Gain, choose_robust
from ldpstream.protocol.terms import SelectionMethod
from ldpstream.streams.synthetic import constant

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.hostile.poisoning.attacks import Attack
from tests.hostile.poisoning.events import EventOutcome, Scheme, WatchedStream, attack_event
from tests.hostile.poisoning.fleet import AttackPlan, Campaign
from tests.hostile.poisoning.rounds import RoundOutcome, Setting, poison
from tests.hostile.poisoning.streams import LABELS, StreamOutcome, poison_stream
from tests.hostile.poisoning.turns import Turns
from tests.hostile.turns import turns_of

from sections import TRUST, table, write_section

COMMAND = ".venv/bin/python benchmarks/poisoning.py --write"
FIGURE = Path(__file__).parents[1] / "docs" / "images" / "poisoning.png"
SHARES = (0.01, 0.05, 0.1)
SHARES_OVER_TIME = (0.01, 0.05)
SETTING = Setting()
RAREST = LABELS - 1
ONE = 40
"""The timestamp at which the label is raised once: on the level before the third jump."""
HONEST_ROUNDS = 10_000
FEW = constant(users=1_000, timestamps=640, p=0.25)
"""The stream of greedy fakes: two epochs of slots at w = 20, of which the second is measured."""
FEW_WINDOW = 20
FEW_FAKES = 0.01


def by_oracle(repeats: int) -> Iterator[RoundOutcome]:
    for oracle in Oracle:
        yield poison(SETTING, oracle, None, 0.0, repeats, seed=0)
        for share in SHARES:
            for attack in Attack:
                yield poison(SETTING, oracle, attack, share, repeats, seed=1)


def by_mechanism(repeats: int) -> Iterator[StreamOutcome]:
    for mechanism in (*PAPER, "lpf"):
        yield poison_stream(mechanism, AttackPlan(Campaign.NOTHING, 0.0, RAREST), repeats=repeats)
        for share in SHARES:
            for campaign in (Campaign.RAISE, Campaign.FORCE, Campaign.SUPPRESS):
                plan = AttackPlan(campaign, share, RAREST)
                yield poison_stream(mechanism, plan, repeats=repeats)
            once = AttackPlan(Campaign.RAISE, share, RAREST, first=ONE, last=ONE)
            yield poison_stream(mechanism, once, repeats=repeats)


def by_selection(repeats: int) -> Iterator[tuple[SelectionMethod, bool, StreamOutcome]]:
    for selection, greedy, mechanism in product(SelectionMethod, (False, True), ("lpu", "lpf")):
        made = partial(_turns, selection, greedy)
        outcome = poison_stream(
            mechanism,
            AttackPlan(Campaign.RAISE, FEW_FAKES, 1),
            source=FEW,
            window=FEW_WINDOW,
            oracle=Oracle.GRR,
            repeats=repeats,
            make_turns=made,
        )
        yield selection, greedy, outcome


def _turns(
    selection: SelectionMethod,
    greedy: bool,
    division: Division,
    fakes: int,
    rng: np.random.Generator,
) -> Turns:
    return turns_of(selection, division, fakes, rng, greedy=greedy)


def over_time(repeats: int) -> dict[tuple[str, Scheme, float], EventOutcome]:
    """Attack an event under every mechanism; a share of 0 is the honest fleet."""
    grid = product(names(), Scheme, (0.0, *SHARES_OVER_TIME))
    found = (attack_event(*one, repeats=repeats) for one in grid)
    return {(one.mechanism, one.scheme, one.share): one for one in found if one is not None}


def false_alarms() -> int:
    """Count alarms in honest rounds, half of them with unary reports and half with hashed ones."""
    small = replace(SETTING, users=1000)
    alarms = 0.0
    for seed, oracle in enumerate((Oracle.OUE, Oracle.OLH)):
        alarms += (
            HONEST_ROUNDS / 2 * poison(small, oracle, None, 0, HONEST_ROUNDS // 2, seed).alarms
        )
    return round(alarms)


def mitigations(repeats: int) -> list[list[str]]:
    """Return rows of: mitigation, without it, with it, what it costs honest data."""
    labels, epsilon, share = SETTING.labels, SETTING.epsilon, 0.05
    once = poison(SETTING, Oracle.OUE, Attack.CAMOUFLAGED, 0.01, repeats, 2)
    often = poison(SETTING, Oracle.OUE, Attack.CAMOUFLAGED, 0.01, repeats, 2, copies=10)
    best, robust = choose(labels, epsilon), choose_robust(labels, epsilon)
    gains = [Gain.of(oracle, labels, epsilon) for oracle in (best, robust)]
    bent, held = (
        poison(SETTING, oracle, Attack.CAMOUFLAGED, share, repeats, 3) for oracle in (best, robust)
    )
    crude = AttackPlan(Campaign.RAISE, share, RAREST, attack=Attack.MAXIMAL_GAIN)
    open_to, closed_to, honest, honest_watched = (
        poison_stream("lpu", plan, users=100_000, oracle=Oracle.OUE, repeats=repeats // 4 or 1)
        for plan in (
            crude,
            replace(crude, discard_below=1e-6),
            replace(crude, campaign=Campaign.NOTHING, share=0.0),
            replace(crude, campaign=Campaign.NOTHING, share=0.0, discard_below=1e-6),
        )
    )
    normalised = poison(SETTING, Oracle.OUE, Attack.CAMOUFLAGED, share, repeats, 4)
    fakes, rate = 50_000, Limits().enrolments_per_second
    return [
        [
            "one report a device and round (always on); 1 % fakes, ten reports each",
            f"bias {often.bias:+.3f}",
            f"bias {once.bias:+.3f}",
            "none",
        ],
        [
            "`limits.enrolments_per_second = 1`: time to enrol 50,000 fakes with a stolen token",
            f"{fakes / rate:.0f} s (at {rate:,})",
            f"{fakes / 3600:.0f} h",
            "so many honest devices wait as long",
        ],
        [
            f'`oracle = "robust"` ({robust} for {best}); 5 % camouflaged',
            f"bias {bent.bias:+.3f}",
            f"bias {held.bias:+.3f}",
            f"variance × {gains[1].noise / gains[0].noise:.2f}",
        ],
        [
            "`suspicion.discard = true`; LPU with OUE, 5 % maximal gain",
            f"bias {open_to.bias:+.3f}",
            f"bias {closed_to.bias:+.3f}; {closed_to.discarded:.0f} of 60 rounds left out",
            f"honest MSE × {honest_watched.mse / honest.mse:.3f}; fakes can silence rounds",
        ],
        [
            "normalisation alone (norm-sub); 5 % camouflaged, OUE",
            f"bias {normalised.bias:+.3f}",
            f"bias {normalised.bias_normalised:+.3f}: **no cure**",
            "bias of its own",
        ],
    ]


def oracle_table(found: list[RoundOutcome]) -> str:
    honest = {one.oracle: one for one in found if one.attack is None}
    rows = []
    for oracle in Oracle:
        gain = Gain.of(oracle, SETTING.labels, SETTING.epsilon)
        for share in SHARES:
            mine = {one.attack: one for one in found if (one.oracle, one.share) == (oracle, share)}
            cells = [f"{mine[attack].bias:+.3f}{_bell(mine[attack])}" for attack in Attack]
            worst = mine[Attack.CAMOUFLAGED]
            theory = share * (gain.raising - SETTING.truth[SETTING.target])
            rows.append(
                [
                    f"{oracle}, {share:.0%}",
                    *cells,
                    f"{theory:+.3f}",
                    f"{worst.bias_normalised:+.3f}",
                    f"× {worst.mse / honest[oracle].mse:.1f}",
                    f"{gain.raising:.2f} / {gain.lowering:.2f}",
                ]
            )
    head = ["oracle, fakes", *Attack, "theory", "after norm-sub", "MSE", "gain up / down"]
    return table(head, rows)


def _bell(outcome: RoundOutcome) -> str:
    """Return a mark for the alarm: in all rounds, in some, in none."""
    return " ●" if outcome.alarms == 1 else " ◐" if outcome.alarms > 0 else ""


def mechanism_table(found: list[StreamOutcome]) -> str:
    rows = []
    for mechanism in (*PAPER, "lpf"):
        mine = [one for one in found if one.mechanism == mechanism]
        honest = mine[0]
        for share in SHARES:
            ours = [one for one in mine if one.plan.share == share]
            by = {one.plan.campaign: one for one in ours if one.plan.last is None}
            (once,) = (one for one in ours if one.plan.last is not None)
            adaptive = mechanism in ("lbd", "lba", "lpd", "lpa")
            rows.append(
                [
                    f"{mechanism}, {share:.0%}",
                    f"{by[Campaign.RAISE].bias:+.3f}",
                    f"{once.bias:+.3f}",
                    f"× {by[Campaign.RAISE].mse / honest.mse:.1f}",
                    *(
                        f"{honest.publications:.0f} → {by[campaign].publications:.0f},"
                        f" MSE × {by[campaign].mse / honest.mse:.1f}"
                        if adaptive
                        else "–"
                        for campaign in (Campaign.FORCE, Campaign.SUPPRESS)
                    ),
                ]
            )
    head = [
        "mechanism, fakes",
        "raise: bias",
        "raise once: bias",
        "raise: MSE",
        "force",
        "suppress",
    ]
    return table(head, rows)


def selection_table(found: list[tuple[SelectionMethod, bool, StreamOutcome]]) -> str:
    by = {(selection, greedy, one.mechanism): one for selection, greedy, one in found}
    rows = []
    for selection, greedy in product(SelectionMethod, (False, True)):
        lpu, lpf = (by[selection, greedy, mechanism] for mechanism in ("lpu", "lpf"))
        rows.append(
            [
                f"{selection}, {'greedy' if greedy else 'obeying'}",
                f"{lpu.faked:.2%}",
                *(f"{one.bias:+.4f} ± {one.error:.4f}" for one in (lpu, lpf)),
            ]
        )
    return table(["selection, fakes", "of all reports", "bias of LPU", "bias of LPF"], rows)


def greedy_page(found: list[tuple[SelectionMethod, bool, StreamOutcome]], repeats: int) -> str:
    gain = Gain.of(Oracle.GRR, len(FEW.domain), SETTING.epsilon).raising
    command = COMMAND.replace("--write", f"--greedy --repeats {repeats} --write")
    return f"""Made by `{command}`.

**By selection.** {FEW_FAKES:.0%} of {FEW.users:,} devices are fake, camouflaged, and raise a label
with a share of 0.25; GRR over {len(FEW.domain)} labels at epsilon {SETTING.epsilon}, w =
{FEW_WINDOW}. *Obeying* fakes toss the coin and keep the ledger that honest ones do; *greedy* ones
report in every round in which a report of theirs is taken. The documented gain, share ×
(1-q)/(p-q), is {FEW_FAKES * gain:.4f}. ± is the standard error.

{selection_table(found)}

On a **roster** a fake is asked as often as anybody. With **open** selection the collector does not
see coins, and cannot know whether a device has a budget left: each greedy fake weighs as much as w
honest devices, and nothing is flagged. With **slots** a report is taken in a turn of its device
only, and turns are at least w timestamps apart, also where slots change: a greedy fake is heard as
often as an honest device, and at times that it cannot choose."""


def draw(found: list[RoundOutcome]) -> None:
    """Draw the bias against the share of fakes, by oracle: measured, and in theory."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    shares = np.linspace(0, 0.1, 11)
    for number, oracle in enumerate(Oracle):
        gain = Gain.of(oracle, SETTING.labels, SETTING.epsilon)
        theory = shares * (gain.raising - SETTING.truth[SETTING.target])
        axes.plot(shares, theory, color=f"C{number}", linewidth=1)
        measured = [
            (one.share, one.bias)
            for one in found
            if one.oracle is oracle and one.attack is Attack.CAMOUFLAGED
        ]
        axes.plot(*zip(*measured, strict=True), "o", color=f"C{number}", label=oracle.value)
    axes.plot(shares, shares, "k--", linewidth=1, label="a lie")
    axes.set(xlabel="share of fake devices", ylabel="bias of the target", ylim=(0, 0.6))
    axes.set_title("camouflaged reports, 32 labels, epsilon 1: lines are theory", fontsize=10)
    axes.legend(ncols=2, frameon=False)
    figure.savefig(FIGURE, dpi=120)


def page(found: dict[str, Any], repeats: int) -> str:
    return f"""Made by `{COMMAND}`, {repeats} repeats.

**By oracle**, one round of {SETTING.users:,} devices over {SETTING.labels} labels at epsilon
{SETTING.epsilon}: bias of the target (its true frequency is
{SETTING.truth[SETTING.target]:.3f}). ● the shape alarm went off in every round, ◐ in some.
*Theory* is for camouflaged reports, share × ((1-q)/(p-q) - f); *after norm-sub* and *MSE*
(against honest) are too. *Gain* is the most that a fake moves an estimate, up and down, per
unit of its share (`oracles/gain.py`).

{found["by_oracle"]}

![bias of the target against the share of fakes, by oracle](images/poisoning.png)

**By mechanism**, 20,000 devices, {LABELS} labels, epsilon 1, w = 10, 60 timestamps with a jump
every 15, camouflaged fakes. *Force* and *suppress* bend only the dissimilarity rounds:
publications honest → poisoned, and the MSE that it costs.

{found["by_mechanism"]}

**What helps.** The alarm is an exact test of the number of bits of unary reports, or of hash
seeds that come twice (`oracles/shape.py`); honest devices set it off in at most one of a
million rounds, by proof. Measured: {found["false_alarms"]} alarms in {HONEST_ROUNDS:,} honest
rounds.

{found["mitigations"]}

What does not help: the alarm sees crude attacks only. GRR, subset and Hadamard reports have no
shape to look at (a subset of the wrong size is refused when it is decoded). Against camouflaged
fakes there are the robust oracle, which bounds what each can do, and enrolment, which bounds
how many there are. Budget division multiplies the gain: a report with epsilon/w can be forged w
times as well, so that with fakes about, population division (LPU, LPA, LPF) is the safer
half."""


def greedy(options: argparse.Namespace) -> None:
    """Measure what fakes gain by ignoring coins and ledgers, by selection."""
    found = list(by_selection(options.repeats))
    text = greedy_page(found, options.repeats)
    rows = [
        {"selection": selection, "greedy": greedy, **asdict(one)}
        for selection, greedy, one in found
    ]
    print(json.dumps(rows, indent=1) if options.json else text)
    if options.write:
        write_section(TRUST, "hostile-greedy", text)


def events_table(found: dict[tuple[str, Scheme, float], EventOutcome]) -> str:
    rows = []
    for mechanism, share in product(names(), SHARES_OVER_TIME):
        cells = []
        for scheme in Scheme:
            if (mechanism, scheme, share) not in found:
                cells.append("–")
                continue
            honest, bent = (found[mechanism, scheme, one] for one in (0.0, share))
            cell = f"{honest.seen:.2f} → {bent.seen:.2f}, MSE × {bent.mse / honest.mse:.1f}"
            if scheme in (Scheme.WASTE, Scheme.FREEZE):
                cell += f", {honest.publications:.0f} → {bent.publications:.0f} publications"
            cells.append(cell)
        rows.append([f"{mechanism}, {share:.0%}", *cells])
    return table(["mechanism, fakes", *Scheme], rows)


def events_page(found: dict[tuple[str, Scheme, float], EventOutcome], repeats: int) -> str:
    watched = WatchedStream()
    command = COMMAND.replace("--write", f"--over-time --repeats {repeats} --write")
    return f"""Made by `{command}`.

**Over time.** A label is held by {watched.usual:.0%} of {watched.users:,} devices and, during an
event of {watched.last - watched.first + 1} timestamps, by {watched.high:.0%}; epsilon
{watched.epsilon}, w = {watched.window}, two labels. Each cell has the share of the event's
timestamps at which the release lies above the middle of the two, so that an event is seen, with
honest devices → with fakes, and by how much the MSE grows, from the first timestamp of the
attack to the last of the event. Fakes are camouflaged, and look innocent at all other times.
*Fake*: there is no event, and for as long they support its label. *Hide*: they support the
other. *Waste*: for a window before the event they make mechanisms publish what has not changed
(a large dissimilarity; for FAST and RescueDP, which decide by what they publish, answers that
swing), and are innocent when it comes. *Freeze*: during the event they pull the dissimilarity
to what was released before it.

{events_table(found)}"""


def events(options: argparse.Namespace) -> None:
    """Measure what a coalition does to an event, by mechanism."""
    found = over_time(options.repeats)
    text = events_page(found, options.repeats)
    rows = [asdict(one) for one in found.values()]
    print(json.dumps(rows, indent=1) if options.json else text)
    if options.write:
        write_section(TRUST, "hostile-events", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--greedy", action="store_true", help="by selection, and nothing else")
    parser.add_argument("--over-time", action="store_true", help="attacks on an event, only")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/trust.md")
    options = parser.parse_args()
    if options.greedy:
        greedy(options)
        return
    if options.over_time:
        events(options)
        return
    oracles = list(by_oracle(options.repeats))
    mechanisms = list(by_mechanism(max(options.repeats // 5, 1)))
    found = {
        "by_oracle": oracle_table(oracles),
        "by_mechanism": mechanism_table(mechanisms),
        "false_alarms": false_alarms(),
        "mitigations": table(
            ["mitigation", "without", "with", "price on honest data"],
            mitigations(options.repeats),
        ),
    }
    if options.json:
        rows = {"oracles": [asdict(one) for one in oracles]}
        rows["mechanisms"] = [asdict(one) for one in mechanisms]
        print(json.dumps(rows | {"false_alarms": found["false_alarms"]}, indent=1, default=str))
    else:
        print(page(found, options.repeats))
    if options.write:
        draw(oracles)
        write_section(TRUST, "hostile-poisoning", page(found, options.repeats))


if __name__ == "__main__":
    main()
