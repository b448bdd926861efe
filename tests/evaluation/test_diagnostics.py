"""Each diagnostic is fine on an honest model and speaks up where it should."""

import numpy as np
import pytest

from echelon.data import make_friedman
from echelon.evaluation.diagnostics import class_errors, diagnose, suspect_rows

CODES = [
    "better-than-constant", "rank-crossings", "neglected-classes", "uneven-errors", "calibration",
    "suspect-labels",
]  # fmt: skip


@pytest.fixture(scope="module")
def honest() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    data = make_friedman(3000, num_classes=6, seed=5)
    p = data.bayes_probabilities
    return data.ranks, (p.cumsum(axis=1)[:, :-1] < 0.5).sum(axis=1), p


def states(*arguments, **options) -> dict[str, str]:
    return {one.code: one.state for one in diagnose(*arguments, **options)}


def test_the_best_possible_model_is_fine_in_every_way(honest) -> None:
    found = diagnose(*honest, crossings=np.zeros(3000))
    assert [one.code for one in found] == CODES
    assert {one.state for one in found} == {"fine"}
    assert all(one.message.endswith(".") for one in found)


def test_a_model_that_says_nothing_is_a_problem(honest) -> None:
    truth, _, p = honest
    middle = np.full(len(truth), 2)
    found = states(truth, middle, np.tile(p.mean(axis=0), (len(p), 1)))
    assert found["better-than-constant"] == "problem"
    assert found["neglected-classes"] == "problem"


def test_crossings_are_reported_by_share_and_size(honest) -> None:
    few = np.zeros(3000)
    few[:3] = 0.01
    assert states(*honest, crossings=few)["rank-crossings"] == "notice"
    many = np.full(3000, 0.2)
    found = diagnose(*honest, crossings=many)[1]
    assert found.state == "problem"
    assert found.figures == {"share": 1.0, "largest": pytest.approx(0.2)}


def test_a_neglected_middle_class_is_named(honest) -> None:
    truth, labels, p = honest
    without = np.where(labels == 3, 2, labels)
    found = {one.code: one for one in diagnose(truth, without, p, classes=list("abcdef"))}
    assert found["neglected-classes"].state == "problem"
    assert found["neglected-classes"].figures["never"] == ["d"]
    assert "class_weight" in found["neglected-classes"].message


def test_a_class_with_large_errors_is_named(honest) -> None:
    truth, labels, p = honest
    wrong = np.where(truth == 5, 0, labels)
    found = {one.code: one for one in diagnose(truth, wrong, p, classes=list("abcdef"))}
    assert found["uneven-errors"].state == "notice"
    assert "The worst class, f," in found["uneven-errors"].message


def test_too_sure_a_model_is_told_to_calibrate(honest) -> None:
    truth, labels, p = honest
    sure = p**4 / (p**4).sum(axis=1, keepdims=True)
    assert states(truth, labels, sure)["calibration"] in ("notice", "problem")


def test_wrong_labels_are_found_first(honest) -> None:
    truth, labels, p = honest
    generator = np.random.default_rng(0)
    edited = truth.copy()
    rows = generator.choice(np.flatnonzero((truth == 0) | (truth == 5)), size=120, replace=False)
    edited[rows] = 5 - truth[rows]
    assert set(suspect_rows(edited, p)[:80]) <= set(rows)
    found = {one.code: one for one in diagnose(edited, labels, p)}["suspect-labels"]
    assert found.state == "notice"
    assert {one["row"] for one in found.figures["rows"]} <= set(rows)
    assert len(found.figures["rows"]) == 20


def test_nothing_is_said_of_crossings_that_nobody_measured(honest) -> None:
    assert [one.code for one in diagnose(*honest)] == [c for c in CODES if c != "rank-crossings"]


def test_a_single_class_has_no_gain_to_speak_of() -> None:
    p = np.tile([0.9, 0.05, 0.05], (30, 1))
    found = diagnose(np.zeros(30), np.zeros(30), p)[0]
    assert found.state == "fine"
    assert "All rows are of one class" in found.message
    assert diagnose(np.zeros(30), np.ones(30), p)[0].state == "notice"


def test_errors_of_classes() -> None:
    found = class_errors(np.array([0, 0, 2]), np.array([0, 1, 0]), 4)
    np.testing.assert_allclose(found, [0.5, np.nan, 2.0, np.nan])


def test_one_row_and_one_class_are_no_reason_to_fail() -> None:
    assert [one.code for one in diagnose([0], [0], [[0.6, 0.4]], crossings=[0])] == CODES
