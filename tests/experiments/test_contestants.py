"""Who competes: names, options, and what there is not."""

from pathlib import Path

import numpy as np
import pytest

from echelon.experiments import compare_methods
from echelon.experiments.contestants import (
    check_contestants,
    contestant_parameters,
    make_model,
    model_of,
    with_values,
)
from echelon.models.table import MODELS
from tests.experiments.made_up import HERE, QUICK, task


def test_options_of_methods_make_methods_of_their_own(tmp_path: Path) -> None:
    specs = ["corn_without_subsets", "corn_without_subsets:mask=published", "sord:temperature=2"]
    runs = compare_methods(task(), specs, 1, tmp_path, parameters=QUICK, executor=HERE)
    by_name = {run.config.method: run for run in runs}
    assert set(specs) <= set(by_name)
    assert by_name[specs[2]].config.parameters["method_options"] == {"temperature": 2}
    words, mask = (by_name[spec].predictions["probabilities"] for spec in specs[:2])
    assert not np.array_equal(words, mask)
    with pytest.raises(ValueError, match="sord has no option 'warmth=2'"):
        compare_methods(task(), ["sord:warmth=2"], 1, tmp_path, executor=HERE)


@pytest.mark.parametrize(
    ("methods", "seeds", "message"),
    [(["magic"], 1, "got magic"), ([], 1, "got none"), (["ce"], 0, "seeds must be at least 1")],
)
def test_wrong_requests(tmp_path, methods, seeds, message) -> None:
    with pytest.raises(ValueError, match=message):
        compare_methods(task(), methods, seeds, tmp_path)


@pytest.mark.parametrize("name", [name for name, row in MODELS.items() if row.is_named])
def test_a_model_is_made_from_what_a_run_writes_down(name: str) -> None:
    """And takes of what all share only what it knows."""
    shared = {"class_weight": "balanced", "recipe": "paper", "device": "cpu"}
    written = contestant_parameters(name, shared) if name != "network" else shared
    made = make_model(written, classes=[1, 2], random_state=3)
    assert made.kind == model_of(written) == name
    assert (made.class_weight, made.random_state) == ("balanced", 3)
    if name != "network":
        assert "recipe" not in written


@pytest.mark.parametrize(
    "spec",
    [
        "svm:form=explicit:C=2",
        "prank:passes=2",
        "neighbors:n_neighbors=5",
        "reduction:scheme=augmented:train_cost=zero_one",
    ],
)
def test_models_compete_with_their_options(tmp_path: Path, spec: str) -> None:
    runs = compare_methods(task(), [spec], 1, tmp_path, executor=HERE)
    (own,) = (run for run in runs if run.config.method == spec)
    constant = next(run for run in runs if run.config.method == "constant")
    assert own.metrics["mae"] < constant.metrics["mae"]


def test_options_are_numbers_and_words_as_they_look() -> None:
    spec = "boosting:rounds=20:learning_rate=0.5:threads=2"
    assert contestant_parameters(spec, {}) == {
        "model": "boosting", "rounds": 20, "learning_rate": 0.5, "threads": 2,
    }  # fmt: skip
    assert contestant_parameters("corn/tabm", {"backbone": "mlp"})["backbone"] == "tabm"
    options = contestant_parameters("clm:link=probit", {"method_options": {"link": "logit"}})
    assert options["method_options"] == {"link": "probit"}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("blend", "methods must be of .*got blend"),  # which needs its models
        ("network", "got network"),  # which is named by a method
        ("boosting/mlp", "got boosting/mlp"),
        ("cumulative_link:slope=2", "has no option 'slope=2'; its options are: .*link"),
        ("boosting:rounds", "boosting has no option 'rounds'"),
    ],
)
def test_contestants_that_there_are_not_are_named(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_contestants(["corn", spec], 1)


def test_a_dot_goes_into_a_parameter_that_is_a_mapping() -> None:
    given = {"inputs": {"text": {"min_count": 1}}, "settings": None}
    found = with_values(given, {"inputs.text.max_tokens": 8, "settings.patience": 3})
    assert found == {
        "inputs": {"text": {"min_count": 1, "max_tokens": 8}}, "settings": {"patience": 3},
    }  # fmt: skip
    assert given == {"inputs": {"text": {"min_count": 1}}, "settings": None}
    with pytest.raises(ValueError, match=r"inputs.text.x goes into|text.x goes into text"):
        with_values({"inputs": {"text": 3}}, {"inputs.text.x": 1})
    asked = contestant_parameters("network:settings.patience=4:inputs.text.max_tokens=8", {})
    model = make_model(asked)
    assert (model.settings, model.inputs) == ({"patience": 4}, {"text": {"max_tokens": 8}})
    for wrong in ("network:settings=4", "network:patience=4", "boosting:rounds.most=4"):
        with pytest.raises(ValueError, match="has no option"):
            contestant_parameters(wrong, {})


def test_settings_that_networks_share_are_not_those_of_trees() -> None:
    """As with `echelon compare --methods corn,boosting --max-epochs 5`."""
    shared = {"settings": {"max_epochs": 5}}
    assert contestant_parameters("boosting", shared) == {"model": "boosting"}
    assert contestant_parameters("network", shared)["settings"] == {"max_epochs": 5}
