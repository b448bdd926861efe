"""Answers: the type that the client takes, with labels as they are."""

import csv
import io
import json

import numpy as np
import pytest

from echelon.serving.answers import answer_type, probability_texts, write_answer
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


def test_written_probabilities_are_those_of_the_model_to_nine_digits() -> None:
    rng = np.random.default_rng(0)
    given = rng.dirichlet(np.full(7, 0.1), 500)
    given[:3] = [[1, *[0] * 6], [*[0] * 6, 1 + 1e-12], [0.5, 0.5 - 1e-10, 1e-10, -1e-18, 0, 0, 0]]
    texts = probability_texts(given, ";")
    written = np.array([[float(cell) for cell in text.split(";")] for text in texts])
    np.testing.assert_allclose(written, given, rtol=0, atol=5.1e-10)
    assert texts[0] == ";".join(["1.000000000", *["0.000000000"] * 6])


def test_what_is_no_probability_is_never_written() -> None:
    with np.errstate(invalid="ignore"), pytest.raises(AssertionError):
        probability_texts(np.array([[0.5, np.nan]]), ",")


def test_intervals_and_labels_are_quoted_in_every_type(fitted) -> None:
    model, labels = ServedModel(fitted), np.array(['a, "b"', "é"], dtype=object)
    said = Predictions(labels, np.full((2, 3), 1 / 3), (labels, labels[::-1]), np.array(["", ""]))
    rows = json.loads(write_answer(model, said, JSON))["predictions"]
    assert [row["interval"] for row in rows] == [[labels[0], labels[1]], [labels[1], labels[0]]]
    assert [row["prediction"] for row in rows] == labels.tolist()
    header, *lines = csv.reader(io.StringIO(write_answer(model, said, CSV).decode()))
    assert header[:3] == ["prediction", "lower", "upper"]
    assert [line[:3] for line in lines] == [[*labels[[0, 0, 1]]], [*labels[[1, 1, 0]]]]
    assert [line[-1] for line in lines] == ["", ""]
