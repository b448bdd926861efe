"""Risks as they are written."""

import numpy as np
import pytest

from echelon.cli.risks import read_risk

CLASSES = ["Low", "Mid, or so", "High"]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("P(y<=mid, or so)", (0, 1)), ("P(y < High)", (0, 1)), ("p(Y>=HIGH)", (2,)),
        ("P(y>Low)", (1, 2)), ("P(y=Low)", (0,)), ("P(y == 'Low')", (0,)),
    ],
)  # fmt: skip
def test_risks_are_sums_of_probabilities(text: str, places) -> None:
    risk = read_risk(text, CLASSES)
    assert risk.places == places
    probabilities = np.array([[0.5, 0.3, 0.2]])
    np.testing.assert_allclose(risk.of(probabilities), probabilities[:, list(places)].sum(1))


@pytest.mark.parametrize(
    ("text", "message"), [("risk", "must be written as"), ("P(y<=Odd)", "names the class 'Odd'")]
)
def test_what_is_no_risk(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_risk(text, CLASSES)
