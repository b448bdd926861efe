"""Drift of a fitted model: quiet on rows alike, loud on each change, and loud about that change."""

import numpy as np
import pandas as pd
import pytest

import echelon
from tests.forging import rewrite
from tests.simulated_drift import alarm_rate, drawn


@pytest.fixture(scope="module")
def model() -> echelon.OrdinalBoosting:
    frame, ranks = drawn(1200, 1000)
    fitted = echelon.OrdinalBoosting(rounds=20, random_state=0).fit(frame[:1000], ranks[:1000])
    return fitted.conformalize(frame[1000:], ranks[1000:])


@pytest.fixture
def rows() -> tuple[pd.DataFrame, np.ndarray]:
    return drawn(500, 1001)


def names(found: echelon.models.drifting.Drift) -> set[tuple[str, str]]:
    return {(test.name, test.what) for test in found.alarms}


def test_rows_of_the_same_distribution_seldom_alarm() -> None:
    """The quick form: of 20 tables at 5 %, more than 4 alarm once in 400; tests/slow has 200."""
    assert alarm_rate(20, 300, 200, first=5000) <= 4 / 20


def test_rows_alike_are_compared_in_everything(model, rows) -> None:
    found = model.drift(*rows)
    assert not found.alarms
    assert found.not_compared == []
    whats = {(test.name, test.what) for test in found.tests}
    for name in ("a", "kind", "classes", "predicted classes"):
        assert (name, "distribution") in whats
    assert {("a", "range"), ("score", "score"), ("coverage", "coverage")} <= whats
    by_name = {(test.name, test.what): test.facts for test in found.tests}
    assert by_name["b", "distribution"]["missing_before"] == pytest.approx(0.1, abs=0.03)
    scores = by_name["score", "score"]
    assert scores["mae"] == pytest.approx(scores["mae_before"], abs=0.2)
    assert sum(by_name["classes", "distribution"]["shares"].values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("change", "found", "sentence"),
    [
        (lambda f: f.assign(c=f["c"] + 0.2), ("c", "distribution"), "c: values lie elsewhere"),
        (lambda f: f.assign(c=f["c"].mask(np.arange(len(f)) < 50, 99.0)), ("c", "range"),
         "c: 0 rows lie below"),
        (lambda f: f.assign(kind=f["kind"].mask(np.arange(len(f)) < 40, "violet")),
         ("kind", "distribution"),
         "kind: 40 rows hold categories that training had not: 'violet' (40)"),
        (lambda f: f.assign(b=f["b"].mask(np.arange(len(f)) < 150)), ("b", "distribution"),
         "% are missing, where training had"),
        (lambda f: f.assign(town=[f"new{i}" if i < 60 else t for i, t in enumerate(f["town"])]),
         ("town", "distribution"), "rows hold categories that training had not: 'new0' (1)"),
    ],
    ids=["shift", "range", "category", "missing", "many categories"],
)  # fmt: skip
def test_each_change_of_a_column_is_found_and_named(model, rows, change, found, sentence) -> None:
    alarms = {(t.name, t.what): t.sentence for t in model.drift(change(rows[0]), rows[1]).alarms}
    assert found in alarms
    assert sentence in alarms[found]


def test_a_changed_mix_of_classes_is_found_with_labels_and_without(model) -> None:
    frame, ranks = drawn(900, 1003)
    kept = (ranks > 0) | (np.arange(900) % 4 == 0)
    assert ("classes", "distribution") in names(model.drift(frame[kept], ranks[kept]))
    assert ("predicted classes", "distribution") in names(model.drift(frame[kept]))


def test_labels_that_no_longer_follow_the_columns_are_found(model, rows) -> None:
    frame, ranks = rows
    shuffled = np.random.default_rng(0).permutation(ranks)
    assert {("score", "score"), ("coverage", "coverage")} <= names(model.drift(frame, shuffled))


def test_a_file_keeps_what_is_compared_and_an_older_one_says_what_it_lacks(
    model, rows, tmp_path
) -> None:
    model.save(tmp_path / "m")
    loaded = echelon.load(tmp_path / "m")
    assert loaded.drift(*rows).document() == model.drift(*rows).document()

    def older(document: dict, tensors: object) -> None:
        del document["reference"]
        for column in document["columns"]:
            del column["bins"]

    rewrite(tmp_path / "m", tmp_path / "m", older)
    found = echelon.load(tmp_path / "m").drift(*rows)
    assert "a: the model holds no counts of this number column" in found.not_compared
    assert "classes: the model holds no counts" in found.not_compared
    assert {test.name for test in found.tests} == {"score", "coverage"}


@pytest.mark.parametrize(
    "wrong", [{"classes": [1]}, {"classes": [1, 2, 3, "x"]}, {"else": [1, 2, 3, 4]}, [1]]
)
def test_counts_that_a_forger_wrote_are_refused(model, tmp_path, wrong) -> None:
    model.save(tmp_path / "m")
    rewrite(tmp_path / "m", tmp_path / "m", lambda said, _: said.update(reference=wrong))
    with pytest.raises(ValueError, match=r"does not describe a model: its (reference|classes)"):
        echelon.load(tmp_path / "m")


def test_arrays_have_drift_too() -> None:
    generator = np.random.default_rng(0)
    numbers = generator.normal(size=(400, 3))
    model = echelon.CumulativeLinkModel().fit(numbers, generator.integers(3, size=400))
    found = model.drift(generator.normal([0, 0, 1], size=(300, 3)))
    assert ("x2", "distribution") in names(found)
    assert ("x0", "distribution") not in names(found)
    assert found.not_compared[0].startswith("predicted classes: the model holds no counts of rows")
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        model.drift(numbers, level=2)
