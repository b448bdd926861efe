"""LightGBM's text of a model: what a fit cannot have written never reaches LightGBM."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echelon.models.tree_text import check_model_text
from echelon.models.trees import OrdinalTrees, fit_trees
from tests.models.test_trees import QUICK, made


@pytest.fixture(scope="module")
def saved():
    return fit_trees(made(300, 5, categories=2), 5, settings=QUICK)


FORGERIES = {
    "cut": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "no trees": lambda text: "tree\nend of trees\n",
    "a child that is not there": lambda text: _changed(text, "left_child", "99"),
    "a leaf that is not there": lambda text: _changed(text, "right_child", "-99"),
    "a circle": lambda text: _changed(text, "left_child", "0"),
    "a column that is not there": lambda text: _changed(text, "split_feature", "6"),
    "a column as another kind": lambda text: _changed(text, "decision_type", "1", "2"),
    "an infinite leaf": lambda text: _changed(text, "leaf_value", "inf"),
    "a leaf of NaN": lambda text: _changed(text, "leaf_value", "nan"),
    "a leaf too many": lambda text: _changed(text, "leaf_value", "0.1 0.1"),
    "too many leaves": lambda text: _changed(text, "num_leaves", "999999999"),
    "a linear tree": lambda text: _changed(text, "is_linear", "1"),
    "sets beyond their end": lambda text: _changed(text, "cat_boundaries", "7"),
    "more sets than there are": lambda text: _changed(text, "num_cat", "9"),
    "another objective": lambda text: text.replace("objective=binary", "objective=lambdarank"),
    "more columns": lambda text: text.replace("max_feature_idx=5", "max_feature_idx=5000000"),
    "wrong sizes": lambda text: re.sub(r"tree_sizes=\d+", "tree_sizes=99999999", text),
    "something behind the end": lambda text: text + "parameters:\n",
}


def _changed(text, key, value, old=r"-?[\d.e-]+"):
    """The first value of a key that stands in a tree replaced, sizes mended."""
    text = re.sub(rf"(\n{key}=(?:[^\n]* )??){old}(?= |\n)", rf"\g<1>{value}", text, count=1)
    return _with_true_sizes(text)


def _with_true_sizes(text):
    trees = text.removesuffix("end of trees\n").split("Tree=")[1:]
    sizes = " ".join(str(len("Tree=") + len(tree)) for tree in trees)
    return re.sub(r"tree_sizes=[\d ]+", f"tree_sizes={sizes}", text)


@pytest.mark.parametrize("kind", FORGERIES)
def test_forged_trees_are_refused(saved, kind):
    forged = FORGERIES[kind](saved.text)
    assert forged != saved.text
    with pytest.raises(ValueError, match="damaged"):
        OrdinalTrees.rebuild(saved.describe() | {"trees": forged})


def test_trees_that_would_let_a_curve_rise_are_refused(saved):
    lines = saved.text.split("\n")
    for place, line in enumerate(lines):
        if line.startswith("leaf_value="):
            values = [-float(value) for value in line.partition("=")[2].split(" ")]
            lines[place] = "leaf_value=" + " ".join(map(repr, values))
    forged = _with_true_sizes("\n".join(lines))
    with pytest.raises(ValueError, match="rise with the threshold"):
        check_model_text(forged, 3, 2)


@given(st.data())
def test_text_with_a_damaged_byte_is_refused_or_harmless(saved, data):
    place = data.draw(st.integers(0, len(saved.text) - 1))
    character = data.draw(st.sampled_from("0123456789-=. \nTeéx\0"))
    forged = saved.text[:place] + character + saved.text[place + 1 :]
    try:
        trees = OrdinalTrees.rebuild(saved.describe() | {"trees": forged})
    except ValueError:
        return
    rows = made(20, 5, categories=2)
    logits = trees.logits(rows.numbers, rows.codes)
    assert np.isfinite(logits).all()
    assert (np.diff(logits, axis=1) <= 0).all()
