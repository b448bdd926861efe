"""Answers: the type that the client takes, with labels as they are."""

import json

import numpy as np
import pytest

from echelon.serving.answers import answer_type, write_answer
from echelon.serving.bodies import CSV, JSON
from echelon.serving.served import Predictions, ServedModel


@pytest.mark.parametrize(
    ("accept", "sent", "given"),
    [
        ("", JSON, JSON), ("*/*", CSV, CSV), ("text/csv", JSON, CSV),
        ("image/png, application/json;q=0.1", CSV, JSON), ("image/png", JSON, JSON),
    ],
)  # fmt: skip
def test_the_client_chooses_and_else_its_body_does(accept: str, sent: str, given: str) -> None:
    assert answer_type(accept, sent) == given


def test_labels_that_are_numbers_stay_such_and_cells_are_quoted(fitted) -> None:
    model = ServedModel(fitted)
    said = Predictions(
        np.array([1, 2]), np.full((2, 3), 1 / 3), None, np.array(["", 'a "b"; c'], dtype=object)
    )
    rows = json.loads(write_answer(model, said, JSON))["predictions"]
    assert rows[0] == {"prediction": 1, "probabilities": [0.333333333] * 3, "outside": []}
    assert rows[1]["outside"] == ['a "b"', "c"]
    lines = write_answer(model, said, CSV).decode().splitlines()
    assert lines[0] == "prediction,probability_low,probability_mid,probability_high,outside"
    assert lines[2].endswith(',"a ""b""; c"')
