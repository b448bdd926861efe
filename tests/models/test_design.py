"""Design matrices: against formulaic's own, and in the ways they can be forged."""

import numpy as np
import pandas as pd
import pytest
import torch

from echelon.data.schema import TableSchema
from echelon.models.design import make_design, read_design
from echelon.models.formula import read_formula


def frame(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "a": rng.uniform(1, 5, n),
            "b": rng.normal(size=n),
            "s": rng.choice(["f", "m"], n),
            "k": rng.choice(["x", "y", "z"], n),
        }
    )


@pytest.mark.parametrize(
    "text",
    [
        "a + s",
        "a * s",
        "s * k",
        "a:s",
        "s:k",
        "log(a) + I(b ** 2) + k",
        "a + a:k",
        "(a + s + k)**2",
    ],
)
def test_spans_what_the_matrix_of_formulaic_spans(text: str) -> None:
    formulaic = pytest.importorskip("formulaic")
    table = frame()
    schema = TableSchema.of(table)
    read = schema.read(table)
    ours = make_design(read, schema, formula=read_formula(text)).matrix(read)
    theirs = formulaic.model_matrix(text, table, context={"log": np.log}).to_numpy(dtype=float)
    ours = np.column_stack([np.ones(len(ours)), ours])
    both = np.column_stack([ours, theirs])
    rank = np.linalg.matrix_rank(theirs)
    assert np.linalg.matrix_rank(ours) == rank
    assert np.linalg.matrix_rank(both) == rank


def test_references_and_gaps() -> None:
    table = frame()
    table.loc[:4, "k"] = None
    table.loc[3:6, "b"] = np.nan
    schema = TableSchema.of(table)
    read = schema.read(table)
    design = make_design(read, schema, reference={"k": "z"})
    assert design.feature_names() == [
        "a", "b", "b is missing", "s = m", "k = x", "k = y", "k is missing",
    ]  # fmt: skip
    x = design.matrix(read)
    np.testing.assert_array_equal(x[:, 6], table["k"].isna())
    np.testing.assert_array_equal(x[3:7, 1], table["b"].median())
    with pytest.raises(ValueError, match="must be one of its categories, 'x', 'y', 'z'; got 'q'"):
        make_design(read, schema, reference={"k": "q"})
    with pytest.raises(ValueError, match="'a', which holds no categories"):
        make_design(read, schema, reference={"a": "q"})
    with pytest.raises(ValueError, match="needs the column 's', which holds no numbers"):
        make_design(read, schema, formula=read_formula("log(s)"))


def test_a_saved_design_is_the_same_and_a_forged_one_refused() -> None:
    table = frame()
    schema = TableSchema.of(table)
    read = schema.read(table)
    design = make_design(read, schema, formula=read_formula("log(a) * k"))
    again = read_design(design.document(), design.state_dict(), schema)
    np.testing.assert_array_equal(again.matrix(read), design.matrix(read))
    for atom, message in (
        (["category", "k", "q"], "of no column that it has"),
        (["number", "s", ""], "of no column that it has"),
        (["expression", "", "open('x')"], "a formula cannot hold"),
        (["expression", "", "log(s)"], "holds no numbers"),
        (["number", 1, ""], "described by texts"),
    ):
        forged = {"features": [["f", "t", [atom]]], "references": {}}
        with pytest.raises(ValueError, match=message):
            read_design(forged, design.state_dict(), schema)
    with pytest.raises(ValueError, match="its centre must be a number for each"):
        read_design(
            design.document(), {"centre": torch.zeros(9).double(), "reach": design.reach}, schema
        )
