"""Fitting from a source: as good as in memory, said beforehand, and refused where it cannot be."""

import numpy as np
import pandas as pd
import pytest

import echelon
from echelon.data import make_friedman, scan
from echelon.data.stream import open_stream
from echelon.data.survey import survey
from echelon.models.streaming import weighed
from echelon.models.table import MODELS, model_class

QUICK = {
    "network": {
        "settings": {"max_epochs": 6}, "device": "cpu", "backbone": "mlp",
        "backbone_options": {"hidden": (32,)},
    },
    "boosting": {"rounds": 40},
    "cumulative_link": {"validation_fraction": 0.1},
}  # fmt: skip
STREAMING = [name for name, row in MODELS.items() if row.streams]


def table(n: int = 3000) -> pd.DataFrame:
    data = make_friedman(n, num_classes=4, seed=0)
    frame = pd.DataFrame(data.features[:, :5], columns=list("abcde"))
    frame["size"] = np.where(frame["d"] > 0.6, "big", "small")
    frame.loc[::9, "e"] = np.nan
    return frame.assign(grade=np.array(["low", "mid", "high", "top"])[data.ranks])


CLASSES = ["low", "mid", "high", "top"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("rows")
    frame = table()
    for number, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[part].to_parquet(place / f"{number}.parquet", row_group_size=400)
    return place


def test_three_models_stream() -> None:
    assert STREAMING == ["network", "boosting", "cumulative_link"]


@pytest.mark.parametrize("name", STREAMING)
def test_a_streamed_fit_is_as_good_as_one_in_memory(name, folder, tmp_path, capsys) -> None:
    frame = table()
    made = model_class(name)
    source = scan(folder, "grade", classes=CLASSES)
    streamed = made(random_state=0, verbose=1, **QUICK[name]).fit(source)
    said = capsys.readouterr().err
    assert "rows are streamed" in said
    assert "MiB of memory" in said
    memory = made(classes=CLASSES, random_state=0, **QUICK[name])
    memory.fit(frame.drop(columns="grade"), frame["grade"])
    test = make_friedman(2000, num_classes=4, seed=9)
    new = pd.DataFrame(test.features[:, :5], columns=list("abcde"))
    new["size"] = np.where(new["d"] > 0.6, "big", "small")
    errors = [
        np.abs(np.array([CLASSES.index(label) for label in model.predict(new)]) - test.ranks).mean()
        for model in (streamed, memory)
    ]
    assert errors[0] < 1.1 * errors[1]
    assert streamed.num_rows_ == 3000
    assert streamed.classes_.tolist() == CLASSES
    assert [column.kind for column in streamed.schema_.columns] == [
        column.kind for column in memory.schema_.columns
    ]
    assert abs(streamed.columns_[4]["missing"] - memory.columns_[4]["missing"]) < 0.02
    assert 200 < streamed.scores_["rows"] < 600
    assert streamed.scores_["mae"] < 1.0
    streamed.save(tmp_path / "model.echelon")
    loaded = echelon.load(tmp_path / "model.echelon")
    np.testing.assert_array_equal(loaded.predict_proba(new), streamed.predict_proba(new))


def test_the_same_source_and_seed_give_the_same_model(folder) -> None:
    source = scan(folder, "grade", classes=CLASSES)
    new = table(50).drop(columns="grade")
    first, second = (
        echelon.OrdinalBoosting(rounds=5, random_state=1).fit(source).predict_proba(new)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


def test_a_model_that_does_not_stream_says_what_memory_it_takes(folder, capsys) -> None:
    source = scan(folder, "grade", classes=CLASSES, drop=["size"])
    model = echelon.PRank(random_state=0, verbose=1).fit(source)
    said = capsys.readouterr().err
    assert "prank does not stream, as network, boosting, cumulative_link do" in said
    assert "3,000 rows are read into memory, about 1 MiB" in said
    assert model.num_rows_ == 3000
    frame = table()
    same = echelon.PRank(classes=CLASSES, random_state=0)
    same.fit(frame[list("abcde")], frame["grade"])
    new = frame[list("abcde")][:100]
    np.testing.assert_array_equal(model.predict_proba(new), same.predict_proba(new))


def test_options_that_need_all_rows_read_them_into_memory(folder, capsys) -> None:
    source = scan(folder, "grade", classes=CLASSES, drop=["size", "e"])
    model = echelon.CumulativeLinkModel(tests=True, verbose=1).fit(source)
    assert "with tests does not stream, so 3,000 rows are read" in capsys.readouterr().err
    assert model.statistics_ is not None


def test_weights_of_classes_and_rows_count(folder, tmp_path) -> None:
    frame = table().assign(w=np.where(np.arange(3000) % 2, 1.0, 0.0))
    frame.to_parquet(tmp_path / "rows.parquet")
    source = scan(tmp_path / "rows.parquet", "grade", classes=CLASSES, weight="w")
    half = echelon.CumulativeLinkModel().fit(source)
    memory = echelon.CumulativeLinkModel(classes=CLASSES)
    features = frame[["a", "b", "c", "d", "e", "size"]]
    memory.fit(features, frame["grade"], sample_weight=frame["w"])
    np.testing.assert_allclose(
        half.fitted_.coefficients, memory.fitted_.coefficients, rtol=0.05, atol=0.02
    )
    balanced = echelon.CumulativeLinkModel(class_weight="balanced")
    plain = scan(folder, "grade", classes=CLASSES)
    balanced.fit(plain)
    memory = echelon.CumulativeLinkModel(classes=CLASSES, class_weight="balanced")
    memory.fit(features, frame["grade"])
    np.testing.assert_allclose(balanced.fitted_.cutpoints, memory.fitted_.cutpoints, atol=0.05)
    known = survey(open_stream(plain), 0.2, 0)
    weighted = weighed(known, np.array([0.0, 1.0, 2.0, 1.0]))
    assert weighted.counting.tolist() == [0, *known.class_counts[1:]]
    assert weighted.held.weight[weighted.held.ranks == 2].tolist() == [2.0] * int(
        (known.held.ranks == 2).sum()
    )


def test_a_class_that_a_subset_lacks_is_said(tmp_path) -> None:
    frame = table(500).assign(grade=np.arange(500) % 2)
    frame.loc[0, "grade"] = 2
    frame.to_parquet(tmp_path / "rows.parquet")
    model = echelon.OrdinalBoosting(rounds=2, random_state=0)
    with pytest.warns(UserWarning, match="no (training|validation) row has the class 2; subsets"):
        model.fit(scan(tmp_path / "rows.parquet", "grade"))


def test_what_cannot_be_is_refused_before_anything_is_read(folder) -> None:
    source = scan(folder, "grade", classes=CLASSES)
    model = echelon.OrdinalClassifier()
    with pytest.raises(ValueError, match="so y must be left out; name the columns"):
        model.fit(source, [1, 2])
    with pytest.raises(ValueError, match="so sample_weight must be left out"):
        model.fit(source, sample_weight=[1, 2])
    with pytest.raises(ValueError, match="reads texts from the column 'size'; read the table"):
        echelon.OrdinalClassifier(text="size").fit(source)
    with pytest.raises(ValueError, match="decision must be one of"):
        echelon.OrdinalClassifier(decision="middle").fit(source)
    with pytest.raises(ValueError, match="strings, whose order is not known"):
        model.fit(scan(folder, "grade"))
    assert not hasattr(model, "labels_")
