"""Explanations of fitted models: what is known of their data comes out."""

import copy

import numpy as np
import pandas as pd
import pytest

import echelon
from echelon.data import make_friedman, make_reviews


@pytest.fixture(scope="module")
def friedman():
    """Boosted trees on 2,000 rows, explained on 1,000 others: five real columns, five of noise."""
    data = make_friedman(3000, num_classes=5, seed=0)
    frame = pd.DataFrame(data.features, columns=[f"V{i + 1}" for i in range(10)])
    model = echelon.OrdinalBoosting(random_state=0).fit(frame[:2000], data.ranks[:2000])
    return model, frame[2000:], model.explain(frame[2000:], data.ranks[2000:])


def test_real_columns_come_before_noise(friedman) -> None:
    _, _, found = friedman
    assert {one.columns[0] for one in found.importance[:5]} == {"V1", "V2", "V3", "V4", "V5"}
    assert all(found.direction(one) == "hardly matters" for one in found.importance[5:])
    assert found.interaction.columns in (("V1", "V2"), ("V2", "V1"))


def test_effects_have_the_direction_and_the_shape_of_the_function(friedman) -> None:
    """10 sin(pi V1 V2) + 20 (V3 - 1/2)^2 + 10 V4 + 5 V5."""
    _, _, found = friedman
    for name in ("V1", "V2", "V4", "V5"):
        effect = found.effects[name].expected_rank
        assert effect[-1] - effect[0] > 0.4, name
    third = found.effects["V3"]
    cells, effect = np.array(third.cells), third.expected_rank
    assert abs(cells[effect.argmin()] - 0.5) < 0.2
    assert min(effect[0], effect[-1]) > effect.min() + 0.3
    assert np.corrcoef(effect, (cells - 0.5) ** 2)[0, 1] > 0.95
    linear = {name: found.effects[name] for name in ("V4", "V5")}
    for effect in linear.values():
        assert np.corrcoef(effect.expected_rank, np.array(effect.cells))[0, 1] > 0.97
    four, five = (np.ptp(effect.expected_rank) for effect in linear.values())
    assert 1.5 < four / five < 2.6  # 10 and 5, on a scale that bends


def test_the_same_call_gives_the_same_and_calibration_is_part_of_it(friedman) -> None:
    model, frame, _ = friedman
    data = make_friedman(1000, num_classes=5, seed=1)
    rows = pd.DataFrame(data.features, columns=frame.columns)
    model = copy.copy(model).calibrate(rows, data.ranks)
    options = {"rows": [3], "repeats": 1, "most_rows": 100}
    first, second = (model.explain(frame, **options).document() for _ in range(2))
    assert first == second
    assert not first["truth"]
    (reasons,) = model.explain(frame, **options).reasons
    np.testing.assert_allclose(
        reasons.exceedance, model.predict_exceedance(frame[3:4])[0], atol=1e-9
    )


def test_words_of_a_text_are_left_out() -> None:
    reviews = make_reviews(300, seed=0)
    frame = pd.DataFrame({"Review": reviews.texts, "length": [len(t) for t in reviews.texts]})
    model = echelon.OrdinalClassifier(
        text="Review", backbone="lstm", settings={"max_epochs": 1}, random_state=0, device="cpu"
    ).fit(frame, reviews.ranks)
    found = model.explain(frame[:60], reviews.ranks[:60], rows=[0], repeats=1)
    words = [one.words for one in found.reasons[0].words]
    assert sorted(words) == sorted(reviews.texts[0].split())
    assert set(found.effects) == {"length"}
    assert {one.columns[0] for one in found.importance} == {"Review", "length"}


def test_own_contributions_are_said_or_none() -> None:
    data = make_friedman(200, num_classes=3)
    linear = echelon.CumulativeLinkModel().fit(data.features, data.ranks)
    assert "score" in linear.contributions(data.features).scale
    found = linear.explain(data.features, data.ranks, rows=[1], repeats=1).document()
    assert len(found["reasons"][0]["own"]["contributions"]) == 10
    network = echelon.OrdinalClassifier(settings={"max_epochs": 1}, device="cpu")
    assert network.fit(data.features, data.ranks).contributions(data.features) is None


def test_wrong_use_is_refused(friedman) -> None:
    model, frame, _ = friedman
    with pytest.raises(ValueError, match=r"rows to explain lie in 0..999; got -1"):
        model.explain(frame, rows=[-1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.explain(frame, [0, 1])
    with pytest.raises(ValueError, match="lies above 0 and up to 1"):
        model.explain(frame, correlated=0)
