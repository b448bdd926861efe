"""Columns as one matrix, and an encoder that comes back from a file that nobody trusts."""

import numpy as np
import pandas as pd
import pytest
import torch

from echelon import OrdinalBoosting
from echelon.data.rows import Rows
from echelon.data.schema import TableSchema
from echelon.models.features import (
    describe_encoder,
    encoded,
    fit_encoder,
    read_places,
    rebuild_encoder,
    require_table,
    with_gaps,
)

FRAME = pd.DataFrame(
    {
        "size": [1.0, np.nan, 3.0, 8.0],
        "same": [2.0] * 4,
        "colour": ["red", None, "blue", "red"],
    }
)


def rows(frame: pd.DataFrame = FRAME, **named: str) -> Rows:
    schema = TableSchema.of(frame, **named)
    return Rows(schema, schema.read(frame), np.arange(len(frame)) % 2)


def test_numbers_are_standardised_and_gaps_are_marked() -> None:
    made = rows()
    matrix = encoded(fit_encoder(made), made.table)
    assert matrix.dtype == np.float64
    # size, whether it is missing, blue, red; nothing of what never varies
    np.testing.assert_array_equal(matrix[:, 1:], [[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    present = np.array([1.0, 3.0, 8.0])
    expected = (present - 3.0) / present.std()
    np.testing.assert_allclose(matrix[[0, 2, 3], 0], expected, rtol=1e-6)
    assert matrix[1, 0] == 0


def test_with_gaps_nothing_is_filled_or_scaled() -> None:
    made = rows()
    np.testing.assert_array_equal(
        with_gaps(made.table, made.schema),
        [[1, 2, 0, 1], [np.nan, 2, 0, 0], [3, 2, 1, 0], [8, 2, 0, 1]],
    )


def test_an_encoder_comes_back_from_its_tensors() -> None:
    made = rows()
    encoder = fit_encoder(made)
    again = rebuild_encoder(describe_encoder(encoder), made.schema)
    np.testing.assert_array_equal(encoded(again, made.table), encoded(encoder, made.table))


@pytest.mark.parametrize("name", ["kept", "indicators"])
@pytest.mark.parametrize(
    ("places", "message"),
    [
        (torch.tensor([2]), "keeps columns that are not there"),
        (torch.tensor([-1]), "keeps columns that are not there"),
        (torch.tensor([0, 0]), "keeps columns that are not there"),
        (torch.tensor([0.0]), "does not say which columns"),
        (torch.tensor([[0]]), "does not say which columns"),
    ],
)
def test_forged_places_are_refused(name: str, places: torch.Tensor, message: str) -> None:
    made = rows()
    tensors = describe_encoder(fit_encoder(made)) | {name: places}
    with pytest.raises(ValueError, match=message):
        rebuild_encoder(tensors, made.schema)
    assert read_places(torch.tensor([1, 0]), 2) == [1, 0]


def test_texts_are_refused_with_a_model_that_reads_them() -> None:
    require_table(rows(), OrdinalBoosting())
    with pytest.raises(ValueError, match=r"OrdinalBoosting reads numbers .* hold texts; drop"):
        require_table(rows(text="colour"), OrdinalBoosting())
