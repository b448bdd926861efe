"""Codes for no answer: in every kind of column, before and after saving, and in other forms."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import echelon
from echelon.data.missing_codes import MISSING_CODES, codes_by_column, emptied
from echelon.data.schema import TableSchema

NAN = float("nan")


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([4, 99, 5], [4, NAN, 5]),
        ([4.0, 99.0, 5.0], [4, NAN, 5]),
        (["4", "99", " 99 "], ["4", None, None]),
        (["4", "99.0", "99,00"], ["4", None, None]),
        (["4", "99,5", "99,000"], ["4", "99,5", "99,000"]),
        (["yes", "Don't know ", "no"], ["yes", None, "no"]),
        ([True, False, True], [True, False, True]),
        ([4, "99", None], [4, None, None]),
    ],
)
def test_every_form_of_a_code_is_found(cells, expected) -> None:
    found = emptied(pd.Series(cells, name="a"), ["99", "don't know", "1e999"]).tolist()
    for one, other in zip(found, expected, strict=True):
        assert one == other or (pd.isna(one) and pd.isna(other))


def test_a_declared_category_can_be_a_code() -> None:
    column = pd.Series(["low", "refused", "high"], dtype="category")
    assert emptied(column, ["refused"]).isna().tolist() == [False, True, False]


def test_codes_of_one_column_and_of_all() -> None:
    found = codes_by_column(["99", "a=b=-1"], ["a=b", "c", "id"], apart=["id"])
    assert found == {"a=b": ("99", "-1"), "c": ("99",)}
    with pytest.raises(ValueError, match="names the column 'd', which the table does not have"):
        codes_by_column(["d=99"], ["a"])
    for wrong in ("=99", "a="):
        with pytest.raises(ValueError, match="must be codes such as 99, or those of a column"):
            codes_by_column([wrong], ["a"])


def coded_table(rows: int = 300) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Answers with codes, the same with empty cells, and ranks."""
    generator = np.random.default_rng(0)
    answers = generator.integers(1, 6, rows).astype(float)
    ranks = np.searchsorted([2, 4], answers + generator.normal(0, 0.5, rows))
    refused = generator.random(rows) < 0.1
    words = np.where(answers > 3, "often", "seldom").astype(object)
    unknown = generator.random(rows) < 0.1
    coded = pd.DataFrame(
        {"q": np.where(refused, 99, answers), "w": np.where(unknown, "no answer", words)}
    )
    clean = pd.DataFrame(
        {"q": np.where(refused, NAN, answers), "w": np.where(unknown, None, words)}
    )
    coded.attrs[MISSING_CODES] = {"q": ("99",), "w": ("no answer",)}
    return coded, clean, ranks


def test_a_model_keeps_its_codes_and_its_graph_does_too(tmp_path: Path) -> None:
    coded, clean, ranks = coded_table()
    model = echelon.OrdinalBoosting(rounds=20, random_state=0).fit(coded, ranks)
    same = echelon.OrdinalBoosting(rounds=20, random_state=0).fit(clean, ranks)
    model.save(tmp_path / "m")
    loaded = echelon.load(tmp_path / "m")
    new = pd.DataFrame({"q": ["99", "4", "99.0"], "w": ["often", "No answer", "seldom"]})
    expected = same.predict_proba(
        pd.DataFrame({"q": [NAN, 4, NAN], "w": ["often", None, "seldom"]})
    )
    np.testing.assert_array_equal(loaded.predict_proba(new), expected)
    assert loaded.columns_[0]["missing_codes"] == ["99"]
    assert loaded.columns_[0]["quantiles"][-1] == 5
    onnxruntime = pytest.importorskip("onnxruntime")
    loaded.export_onnx(tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    columns = {"q": np.array([99.0, 4, 99]), "w": np.array(["often", "", "seldom"], dtype=object)}
    (found,) = session.run(["probabilities"], columns)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_arrays_given_to_a_model_of_a_frame_have_codes_too() -> None:
    frame = pd.DataFrame({"a": [1.0, 99.0, 3.0], "b": [4.0, 5.0, 99.0]})
    frame.attrs[MISSING_CODES] = {"a": ("99",)}
    schema = TableSchema.of(frame)
    given = frame.to_numpy()
    assert np.isnan(schema.read(given).numbers).tolist() == [
        [False] * 2,
        [True, False],
        [False] * 2,
    ]
    assert given[1, 0] == 99  # what was given stays as it is


@pytest.mark.parametrize("codes", [5, [5], {"a": 1}])
def test_codes_in_a_file_that_are_none_are_refused(tmp_path: Path, codes) -> None:
    coded, _, ranks = coded_table(60)
    model = echelon.OrdinalBoosting(rounds=2).fit(coded, ranks)
    first, *others = model.schema_.columns
    model.schema_.columns = (first.__class__(first.name, "number", (), "", codes), *others)
    model.save(tmp_path / "m")
    with pytest.raises(ValueError, match="does not describe a model"):
        echelon.load(tmp_path / "m")
