"""Odd tables and labels: the outcome is a result or a ValueError, never anything else."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from echelon import OrdinalClassifier, load
from echelon.cli.main import app

cells = {
    "numbers": st.one_of(
        st.none(),
        st.floats(allow_nan=True, allow_infinity=True),
        st.integers(-(2**70), 2**70),
    ),
    "small": st.integers(-3, 3),
    "texts": st.one_of(st.none(), st.text(max_size=4), st.sampled_from(["a", "b", "1", "nan"])),
    "booleans": st.booleans(),
    "dates": st.sampled_from(list(pd.date_range("2020-01-01", periods=3))),
    "mixed": st.one_of(st.none(), st.integers(-2, 2), st.text(max_size=2), st.booleans()),
}


@st.composite
def tables(draw: st.DrawFn, rows: int) -> pd.DataFrame:
    kinds = draw(st.lists(st.sampled_from([*cells]), min_size=0, max_size=4))
    names = draw(
        st.lists(st.text(min_size=1, max_size=5), min_size=len(kinds), max_size=len(kinds))
    )
    columns = [
        pd.Series(draw(st.lists(cells[kind], min_size=rows, max_size=rows))) for kind in kinds
    ]
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(rows))
    frame.columns = names
    return frame


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_fit_and_predict(data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, 25))
    table, fresh = data.draw(tables(rows)), data.draw(tables(4))
    kind = data.draw(st.sampled_from(["small", "numbers", "texts", "booleans", "mixed"]))
    y = pd.Series(data.draw(st.lists(cells[kind], min_size=rows, max_size=rows)))
    classes = data.draw(st.sampled_from([None, ["a", "b", "1"], [0, 1, 2, 3]]))
    model = OrdinalClassifier(
        classes=classes, settings={"max_epochs": 1}, random_state=0, device="cpu"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(table, y)
        except ValueError as error:
            assert str(error)  # noqa: PT017
            return
        probabilities = model.predict_proba(table)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
        try:
            assert len(model.predict(fresh)) == 4
        except ValueError as error:
            assert str(error)  # noqa: PT017


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_commands_on_any_file(tmp_path: Path, content: bytes) -> None:
    source, model = tmp_path / "t.csv", tmp_path / "m"
    source.write_bytes(content)
    for arguments in (
        ("fit", str(source), "--target", "a", "--out", str(model), "--max-epochs", "1"),
        ("evaluate", str(source), str(source), "--target", "a"),
        ("predict", str(source), str(source), "--out", str(tmp_path / "p")),
    ):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0 or isinstance(result.exception, ValueError | SystemExit)
    assert {path.name for path in tmp_path.iterdir()} <= {"t.csv", "m"}
    model.unlink(missing_ok=True)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=300))
def test_load_of_any_bytes(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ValueError, match=r".+"):
        load(tmp_path / "m")
