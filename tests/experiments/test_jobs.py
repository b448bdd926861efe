"""One run as a function of its configuration, and the baselines beside it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from echelon.data import make_friedman
from echelon.experiments import compare_methods, table_task
from echelon.experiments.jobs import baseline_jobs, make_job
from echelon.experiments.searching import with_validation
from tests.experiments.made_up import HERE, QUICK, task
from tests.media import mixed_table


def test_scored_rows_can_be_found_in_the_source(tmp_path: Path) -> None:
    data = make_friedman(120, num_classes=3, seed=2)
    frame = pd.DataFrame(data.features, columns=[f"V{i}" for i in range(10)])
    made = table_task("made up", frame, data.ranks)
    cut = with_validation(made, 0.2)
    for one, part in ((made, "test"), (cut, "valid")):
        done = make_job(
            one, "constant", command="compare", role="baseline", parameters={}, part=part
        )
        arrays = done.run().predictions
        np.testing.assert_array_equal(data.ranks[arrays["row"]], arrays["truth"])
    assert set(cut.numbers["train"]) | set(cut.numbers["valid"]) == set(made.numbers["train"])
    pd.testing.assert_frame_equal(
        frame.iloc[cut.numbers["valid"]].reset_index(drop=True), cut.validation[0]
    )


def test_settings_are_looked_at_before_anything_runs(tmp_path: Path) -> None:
    for wrong, message in (
        ({"device": "tpu"}, "device must be auto, cpu"),
        ({"recipe": "magic"}, "recipe must be one of"),
        ({"settings": {"learning_rate": "fast"}}, "learning_rate must be a number"),
    ):
        with pytest.raises(ValueError, match=message):
            compare_methods(task(), ["ce"], 1, tmp_path / "runs", parameters=wrong)
    assert not (tmp_path / "runs").exists()


def test_texts_have_a_bag_of_words_beside_them(tmp_path: Path) -> None:
    frame, ranks = mixed_table(80)  # whose texts name the class
    made = table_task(
        "reviews", frame[["size", "review"]], ranks, columns_by_kind={"text": "review"}
    )
    asked = {**QUICK, "text": "review", "backbone": "lstm"}
    runs = compare_methods(made, ["ce"], 1, tmp_path, parameters=asked, executor=HERE)
    by_name = {run.config.method: run for run in runs}
    assert by_name["bag of words"].metrics["mae"] < 0.1 < by_name["constant"].metrics["mae"]
    np.testing.assert_allclose(
        by_name["bag of words"].predictions["probabilities"].sum(1), 1, atol=1e-6
    )


def test_texts_without_a_common_word(tmp_path: Path) -> None:
    """Then a bag of words knows no more than the shares of the classes."""
    frame = pd.DataFrame({"text": [f"word{i}" for i in range(38)] + [None, ""]})
    made = table_task("odd", frame, np.arange(40) % 2, columns_by_kind={"text": "text"})
    asked = {**QUICK, "text": "text", "backbone": "lstm"}
    runs = compare_methods(made, ["ce"], 1, tmp_path, parameters=asked, executor=HERE)
    bag, constant = (
        next(run for run in runs if run.config.method == name).predictions["probabilities"]
        for name in ("bag of words", "constant")
    )
    np.testing.assert_array_equal(bag, constant)


def test_missing_texts_do_not_spoil_the_bag_of_words(tmp_path: Path) -> None:
    frame, ranks = mixed_table(80)
    frame.loc[[0, 5], "review"] = [None, np.nan]
    made = table_task(
        "reviews", frame[["size", "review"]], ranks, columns_by_kind={"text": "review"}
    )
    bag = next(one for one in baseline_jobs(made, command="compare", parameters={})
               if one.config.method == "bag of words")  # fmt: skip
    assert bag.run().metrics["mae"] < 0.2


def test_a_linear_model_on_encodings_stands_beside_frozen_encoders(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("ECHELON_CACHE", str(tmp_path))
    generator = np.random.default_rng(0)
    ranks = generator.integers(3, size=120)
    shades = 70 * ranks[:, None, None] + generator.integers(0, 60, size=(120, 12, 12))
    frame = pd.DataFrame({"photo": list(shades.astype(np.uint8))})
    task = table_task("photos", frame, ranks, columns_by_kind={"image": "photo"})
    task = replace(task, validation=(task.test_features[:10], task.test_ranks[:10]))
    frozen = {
        "backbone": "timm:resnet10t", "backbone_options": {"frozen": True}, "device": "cpu",
        "inputs": {"image": {"size": 32}}, "settings": {"max_epochs": 1},
    }  # fmt: skip
    plain = {**frozen, "backbone_options": None}
    names = [job.config.method for job in baseline_jobs(task, command="c", parameters=plain)]
    assert names == ["constant"]
    constant, linear = baseline_jobs(task, command="c", parameters=frozen)
    assert linear.config.method == "linear on encodings"
    assert linear.config.role == "baseline"
    run = linear.run()
    assert run.metrics["mae"] < 0.5 * constant.run().metrics["mae"]
    np.testing.assert_allclose(run.predictions["probabilities"].sum(1), 1, atol=1e-6)
