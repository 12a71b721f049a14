"""The words follow from the numbers."""

from __future__ import annotations

from typing import Any

from ldpstream.lab.recommendation import recommend

Row = dict[str, Any]


def rows(
    errors: dict[str, list[float]],
    cfpu: dict[str, float] | None = None,
    auc: dict[str, float] | None = None,
    epsilon: float = 1.0,
) -> list[Row]:
    """Runs of one setting: mechanism -> the error of each repeat."""
    return [
        {
            "mechanism": mechanism,
            "epsilon": epsilon,
            "window": 20,
            "repeat": repeat,
            "mre": mre,
            "mae": mre / 10,
            "cfpu": (cfpu or {}).get(mechanism, 0.05),
            "auc": 0.5,
            "auc_per_label": (auc or {}).get(mechanism, 0.9),
            **dict.fromkeys(("coverage", "p50_mae", "p99_mae")),
        }
        for mechanism, mres in errors.items()
        for repeat, mre in enumerate(mres)
    ]


def test_a_clear_winner() -> None:
    advice = recommend(rows({"lpu": [0.2, 0.21, 0.2], "lpa": [0.1, 0.1, 0.1]}))
    assert advice.chosen.mechanism == "lpa"
    first = advice.sentences()[0]
    assert first.startswith("Use LPA. LPU errs 2.03 times as much (95 % interval 1.9")
    assert "off by 0.01 on average" in " ".join(advice.sentences())
    assert "one every 20" in " ".join(advice.sentences())


def test_what_cannot_be_told_apart_is_decided_by_cost() -> None:
    noisy = {"lpu": [0.11, 0.08] * 5, "lpa": [0.1, 0.11] * 5, "lba": [0.9, 0.9] * 5}
    advice = recommend(rows(noisy, cfpu={"lpu": 0.05, "lpa": 0.04, "lba": 1.17}))
    assert [one.mechanism for one in advice.ranking] == ["lpu", "lpa", "lba"]
    assert advice.chosen.mechanism == "lpa"
    first = advice.sentences()[0]
    assert "cannot be told apart: LPU; LPA. LPA errs 1.12 times as much" in first
    assert "LBA" not in first
    assert first.endswith("repeats). Of these LPA sends the fewest reports.")


def test_few_repeats_never_recommend_what_is_only_cheap() -> None:
    names = ["lpf", "fast-budget", "lpu", "lpa", "lpd", "lsp", "rescuedp"]
    wild = {name: [0.1 * 2**n, 0.1 * 5 ** (2 * n)] for n, name in enumerate(names)}
    advice = recommend(rows(wild, cfpu={"rescuedp": 0.001}))
    assert advice.chosen.mechanism == "lpf"
    first = advice.sentences()[0]
    assert "2 repeats are too few to tell it from: FAST, budget; LPU; LPA; LPD; 2 more." in first
    assert "(95 % interval below 0.01 to above 100, 2 repeats)" in first
    assert first.endswith("give --repeats 10 or more.")


def test_one_repeat_says_so() -> None:
    advice = recommend(rows({"lpu": [0.2], "lpa": [0.1]}, cfpu={"lpu": 0.01}))
    assert advice.chosen.mechanism == "lpa"
    assert "--repeats 10" in advice.sentences()[0]


def test_other_settings_events_and_large_errors_are_mentioned() -> None:
    data = rows({"lsp": [0.6, 0.61], "lpa": [0.9, 0.91]}, auc={"lpa": 0.95, "lsp": 0.7})
    data += rows(
        {"lsp": [0.75, 0.76], "lpa": [0.7, 0.71]}, auc={"lpa": 0.95, "lsp": 0.7}, epsilon=2.0
    )
    said = " ".join(recommend(data).sentences())
    assert "mean error in 1 of 2 settings. Better beyond chance: LPA at (ε = 2, w = 20)." in said
    assert "look at LPA: its AUC per label is 0.950" in said
    assert "small values drown" in said


def test_a_single_mechanism_and_an_error_of_zero() -> None:
    assert recommend(rows({"lpa": [0.0, 0.0]})).sentences()[0] == "Only LPA was run."


def test_ranking_goes_from_best_to_worst() -> None:
    advice = recommend(rows({"a": [0.3, 0.3], "b": [0.1, 0.1], "c": [0.2, 0.2]}))
    assert [one.mechanism for one in advice.ranking] == ["b", "c", "a"]
    assert advice.ranking[0].factor == 1
