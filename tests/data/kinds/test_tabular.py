"""Numbers and categories as features: any unit, any gap, and the order kept."""

from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from echelon.data.kinds import tabular
from echelon.data.kinds.tabular import TableEncoder
from echelon.data.schema import TableSchema


def encode(frame: pd.DataFrame, scaling: str = "quantile") -> tuple[TableSchema, TableEncoder]:
    schema = TableSchema.of(frame)
    return schema, TableEncoder.of(schema.read(frame), schema, scaling=scaling)


def features(schema: TableSchema, encoder: TableEncoder, rows) -> torch.Tensor:
    table = schema.read(rows)
    return encoder(torch.from_numpy(table.numbers), torch.from_numpy(table.codes))


@pytest.mark.parametrize("scaling", ["quantile", "standard", "none"])
def test_kinds_of_columns(frame: pd.DataFrame, scaling: str) -> None:
    schema, encoder = encode(frame, scaling)
    assert [c.name for c in schema.numeric] == ["size", "count", "flag", "same"]
    assert [c.categories for c in schema.categorical] == [("blue", "red"), ("b", "a")]
    found = features(schema, encoder, frame)
    # size, count, flag; the indicator of size; blue, red; b, a; nothing of `same`
    assert found.shape == (4, encoder.num_features) == (4, 3 + 1 + 2 + 2)
    assert torch.isfinite(found).all()
    assert found[:, 3].tolist() == [0, 0, 1, 0]
    assert found[:, 4:6].tolist() == [[0, 1], [0, 0], [1, 0], [0, 1]]


def test_order_of_columns_and_unknown_categories(frame: pd.DataFrame) -> None:
    schema, encoder = encode(frame)
    expected = features(schema, encoder, frame)
    shuffled = frame[frame.columns[::-1]].assign(more=1)
    assert torch.equal(features(schema, encoder, shuffled), expected)
    odd = frame.assign(colour="green", grade=None, size=np.nan)
    found = features(schema, encoder, odd)
    assert (found[:, 4:] == 0).all()
    assert (found[:, 3] == 1).all()


def test_a_missing_value_where_there_was_none_takes_the_middle(frame: pd.DataFrame) -> None:
    schema, encoder = encode(frame, "standard")
    found = features(schema, encoder, frame.assign(count=np.nan))
    assert (found[:, 1] == 0).all()


@given(arrays("float64", (30, 2), elements=st.floats(-1e6, 1e6)))
def test_quantile_scaling_keeps_the_order_and_the_range(values: np.ndarray) -> None:
    schema, encoder = encode(pd.DataFrame(values, columns=["a", "b"]))
    table = schema.read(pd.DataFrame(values, columns=["a", "b"]))
    found = encoder(torch.from_numpy(table.numbers), torch.from_numpy(table.codes))
    assert found.abs().max() <= 3**0.5 + 1e-5 if found.numel() else True
    for place, column in enumerate(encoder.kept.tolist()):
        order = np.argsort(values[:, column], kind="stable")
        assert (found[order, place].diff() >= -1e-6).all()


@given(arrays("float64", (40, 2), elements=st.integers(-9, 9).map(lambda i: i / 4)))
def test_an_exported_graph_scales_as_the_encoder_does(values: np.ndarray) -> None:
    """It looks at every segment where the encoder searches; ties are where they could differ."""
    _, encoder = encode(pd.DataFrame(values, columns=["a", "b"]))
    x = torch.from_numpy(values[:, encoder.kept.numpy()]) - encoder.centre
    with mock.patch("torch.compiler.is_exporting", return_value=True):
        everywhere = encoder._to_uniform(x / encoder.scale)
    torch.testing.assert_close(encoder._to_uniform(x / encoder.scale), everywhere)


def test_uniform_columns_stay_uniform() -> None:
    values = np.random.default_rng(0).random((5000, 1))
    schema, encoder = encode(pd.DataFrame(values, columns=["x"]))
    found = features(schema, encoder, pd.DataFrame(values, columns=["x"]))
    np.testing.assert_allclose(found[:, 0], (values[:, 0] - 0.5) * np.sqrt(12), atol=0.06)


@pytest.mark.parametrize("scaling", ["quantile", "standard"])
@pytest.mark.parametrize("fill", [1e15, -1e20, 9.96921e36, 1e300])
@pytest.mark.parametrize("rows", [1, 20])
def test_a_fill_value_does_not_squeeze_the_others(scaling: str, fill: float, rows: int) -> None:
    """Some of 300 cells hold a number that stands for nothing."""
    generator = np.random.default_rng(0)
    clean = pd.DataFrame({"dense": generator.normal(size=300), "rare": np.arange(300) % 10 == 0})
    clean = clean.astype(float)
    expected = features(*encode(clean, scaling), clean)
    spoilt = clean.copy()
    spoilt.loc[spoilt.index[:rows], ["dense", "rare"]] = fill
    schema, encoder = encode(spoilt, scaling)
    found = features(schema, encoder, spoilt)
    assert torch.isfinite(found).all()
    for column in (0, 1):
        others = found[rows:, column]
        correlation = np.corrcoef(others, expected[rows:, column])[0, 1]
        assert correlation > 0.99
        # a network sees such differences: squeezed columns had a spread of 1e-14
        assert others.std() > 0.2


@pytest.mark.parametrize("scaling", ["quantile", "standard"])
@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1e-30, 1e30, 1e160, 1e300])
def test_the_unit_of_a_column_does_not_matter(scaling: str, unit: float) -> None:
    values = pd.DataFrame({"a": np.random.default_rng(0).normal(size=200)})
    expected = features(*encode(values, scaling), values)
    torch.testing.assert_close(features(*encode(values * unit, scaling), values * unit), expected)


@given(
    arrays("float64", (12, 1), elements=st.floats(allow_nan=False, allow_infinity=False)),
    st.sampled_from(["quantile", "standard", "none"]),
)
def test_any_finite_column_is_encoded_or_named(values: np.ndarray, scaling: str) -> None:
    frame = pd.DataFrame(values, columns=["odd"])
    try:
        schema, encoder = encode(frame, scaling)
    except ValueError as error:
        if "column 'odd'" in str(error):
            return
        raise
    assert torch.isfinite(features(schema, encoder, frame)).all()


def test_what_cannot_be_scaled_is_named() -> None:
    with pytest.raises(ValueError, match=r"column 'a' runs from -1.7e\+308 to 1.7e\+308"):
        encode(pd.DataFrame({"a": [-1.7e308, 1.7e308, 1.7e308]}))
    with pytest.raises(ValueError, match=r"column 'a' holds 1e\+160, which is too large"):
        encode(pd.DataFrame({"a": [0, 1e160]}), "none")


def test_large_numbers_are_told_apart() -> None:
    values = pd.DataFrame({"time": 1.6e9 + np.arange(100.0)})
    schema, encoder = encode(values, "standard")
    assert len(features(schema, encoder, values).unique()) == 100


def test_the_encoder_is_differentiable() -> None:
    values = torch.randn(50, 2, dtype=torch.float64, requires_grad=True)
    array = values.detach().numpy()
    schema = TableSchema.of(array)
    encoder = TableEncoder.of(schema.read(array), schema, scaling="quantile")
    encoder(values, torch.zeros(50, 0, dtype=torch.long)).sum().backward()
    assert torch.isfinite(values.grad).all()
    assert (values.grad != 0).any()


def test_without_scaling_numbers_stay_and_missing_ones_are_the_median() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 40.0, np.nan]})
    schema, encoder = encode(frame, "none")
    raw = schema.read(frame)
    features = encoder(torch.from_numpy(raw.numbers), torch.from_numpy(raw.codes))
    assert features[:, 0].tolist() == [1.0, 2.0, 40.0, 2.0]


@pytest.mark.parametrize("knots", [1, 2, 5, 31, 32])
def test_segments_are_the_same_one_by_one_and_all_at_once(knots: int, monkeypatch) -> None:
    rng = np.random.default_rng(knots)
    edges = torch.from_numpy(np.sort(rng.integers(0, 9, size=(3, knots)).astype(float), axis=1))
    numbers = torch.from_numpy(rng.integers(-2, 11, size=(3, 400)) / 1.0).requires_grad_()
    halved = tabular._segments(edges, numbers)
    monkeypatch.setattr(tabular, "_FEW", 1000)
    assert torch.equal(halved, tabular._segments(edges, numbers))
