"""Reasons of a request: the same for the same row, whatever comes beside it."""

import pandas as pd
import pytest

from echelon.serving.bodies import ReceivedRows
from echelon.serving.reasons import explain_rows
from echelon.serving.refusal import Refusal
from echelon.serving.served import ServedModel


def received(frame) -> ReceivedRows:
    return ReceivedRows({name: frame[name].to_numpy(dtype=object) for name in frame})


def test_a_row_has_the_same_reasons_alone_and_among_others(fitted, table) -> None:
    model, rows = ServedModel(fitted), table.drop(columns="grade").head(3)
    together = explain_rows(model, received(rows))["reasons"]
    alone = explain_rows(model, received(rows.iloc[1:2]))["reasons"]
    assert alone[0]["sentences"] == together[1]["sentences"]
    assert alone[0]["contributions"] == pytest.approx(together[1]["contributions"], abs=1e-5)


def test_a_model_of_images_is_refused_with_what_to_do(fitted, monkeypatch) -> None:
    from echelon.data.schema import TableSchema

    schema = TableSchema.of(pd.DataFrame({"photo": ["x.png"]}), image="photo")
    model = ServedModel(fitted)
    monkeypatch.setattr(ServedModel, "schema", schema)
    with pytest.raises(Refusal, match=r"there is no typical image; try `echelon explain`"):
        explain_rows(model, ReceivedRows({"photo": pd.Series([b"x"]).to_numpy()}))
