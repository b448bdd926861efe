"""The table of models: what a row says of a class is true of it."""

import inspect
import json

import pytest

import echelon
from echelon.methods import METHODS
from echelon.models.base import CurveClassifier
from echelon.models.table import MODELS, model_class


@pytest.mark.parametrize("name", MODELS)
def test_a_row_names_a_class_that_knows_its_name(name: str) -> None:
    made = model_class(name)
    assert issubclass(made, CurveClassifier)
    assert made.kind == MODELS[name].name == name
    assert getattr(echelon, made.__name__) is made
    assert MODELS[name].summary.endswith(".")


@pytest.mark.parametrize("name", MODELS)
def test_the_defaults_of_a_model_can_be_written_as_json(name: str) -> None:
    """As runs and files write them down; and all models share what the base class asks for."""
    model = model_class(name)()
    defaults = model.get_params(deep=False)
    assert json.loads(json.dumps(defaults, allow_nan=False)).keys() == defaults.keys()
    shared = {"classes", "decision", "class_weight", "random_state", "verbose"}
    assert shared <= set(defaults)
    assert 0 <= model.validation_fraction < 1  # which a blend has as a constant


@pytest.mark.parametrize("name", MODELS)
def test_what_a_row_says_of_its_class_is_so(name: str) -> None:
    row, made = MODELS[name], model_class(name)
    assert row.has_method == ("method" in inspect.signature(made).parameters)
    assert row.tables_only != ("text" in inspect.signature(made).parameters) or not row.is_named


def test_names_of_models_and_methods_are_disjoint() -> None:
    """As one word on the command line says which it is."""
    assert not set(MODELS) & set(METHODS)
    with pytest.raises(ValueError, match=r"model must be one of network, boosting.*got 'forest'"):
        model_class("forest")
