"""Recipes: what is refused before anything is trained."""

from dataclasses import fields

import pytest

from echelon.methods import METHODS
from echelon.networks.table import BACKBONES
from echelon.training.recipes import (
    SETTING_NAMES,
    Settings,
    make_settings,
    make_spec,
    require_settings,
)

ENSEMBLES = [name for name, row in BACKBONES.items() if row.is_ensemble]
COUPLING = [name for name, row in METHODS.items() if row.couples_rows]


@pytest.mark.parametrize("backbone", ENSEMBLES)
@pytest.mark.parametrize("method", COUPLING)
def test_a_method_that_couples_rows_takes_no_ensemble(method: str, backbone: str) -> None:
    with pytest.raises(
        ValueError, match=f"couples the rows.*got the ensemble '{backbone}': choose"
    ):
        make_spec("default", method, backbone, ("table",), {})
    with pytest.raises(ValueError, match="couples the rows"):
        make_spec("default", method, {"table": backbone}, ("table", "text"), {})


def test_who_couples_rows_says_so() -> None:
    assert COUPLING == ["cnnpor", "ranking", "diffsort"]
    assert ENSEMBLES == ["tabm"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"num_rows": 5000}, "tabm"),
        ({"num_rows": 5001}, "mlp"),
        ({}, "mlp"),
        ({"num_rows": 100, "recipe": "paper"}, "paper"),
        ({"num_rows": 100, "backbone": "mlp"}, "mlp"),
        ({"num_rows": 100, "overrides": {"backbone_options": {"hidden": (8,)}}}, "mlp"),
        *(({"num_rows": 100, "method": method}, "mlp") for method in COUPLING),
    ],
)
def test_few_rows_are_learnt_by_an_ensemble_where_nobody_said_otherwise(given, expected) -> None:
    asked = {"recipe": "default", "method": "corn", "backbone": None, "overrides": {}} | given
    spec = make_spec(
        asked["recipe"], asked["method"], asked["backbone"], ("table",), asked["overrides"],
        asked.get("num_rows"),
    )  # fmt: skip
    assert spec.backbones == {"table": expected}
    assert spec.networks == (3 if expected == "tabm" else 1)
    assert make_spec("default", "corn", "tabm", ("table",), {}, 100).networks == 1


@pytest.mark.parametrize(
    ("kind", "backbone", "options"),
    [
        ("table", "mlp", {}),
        ("text", "lstm", {}),
        ("image", "resnet", {}),
        ("image", "timm:resnet18", {}),
        ("image", "timm:resnet18", {"frozen": True}),
    ],
)
def test_training_ends_early_unless_it_is_the_papers(kind, backbone, options) -> None:
    given = {"backbone_options": options}
    for recipe, stops in (("default", True), ("paper", False)):
        spec = make_spec(recipe, "corn", {kind: backbone}, (kind,), given)
        settings = make_settings(recipe, spec, 1000, {})
        assert (settings.patience is not None) == stops
        assert not stops or settings.patience < settings.max_epochs


def test_every_setting_says_what_it_is() -> None:
    text = Settings.__doc__
    assert [field.name for field in fields(Settings) if f"    {field.name} : " not in text] == []
    assert "`scaling`" in text
    assert "`networks`" in text
    assert set(SETTING_NAMES) == {field.name for field in fields(Settings)} - {"decision"} | {
        "scaling",
        "networks",
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_epoch": 3}, "no setting 'max_epoch'; there are: .*: did you mean 'max_epochs'"),
        ({"learning_rates": 1}, "did you mean 'learning_rate'"),
        ({"momentum": 1}, "no setting 'momentum'; there are: max_epochs.*networks: leave it out"),
        ({3: 1}, "no setting '3'"),
        ({"decision": "mode"}, "got 'decision', which is a parameter of its own: write decision="),
        (["max_epochs"], r"settings must be a mapping .* such as \{'max_epochs': 10\}; got \["),
    ],
)
def test_what_is_no_setting_is_refused_with_what_is_near(given, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        require_settings(given, ["method", "decision"])


@pytest.mark.parametrize(
    ("kind", "recipe", "expected"),
    [
        ("image", "default", True),
        ("text", "default", True),
        ("table", "default", False),
        ("image", "paper", False),
        ("text", "paper", False),
        ("table", "paper", False),
    ],
)
def test_heads_of_texts_and_images_start_evenly_unless_it_is_the_papers(
    kind: str, recipe: str, expected: bool
) -> None:
    spec = make_spec(recipe, "corn", None, (kind,), {})
    assert make_settings(recipe, spec, 1000, {}).even_start is expected
