"""A graph of ONNX that others write their nodes into."""

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import TensorProto
from torch import Tensor, nn

from echelon.data.schema import Column, TableSchema
from echelon.models.graph import Graph

SCHEMA = TableSchema(
    (Column("val_0", "number"), Column("colour", "category", ("red", "blue"))), named=True
)


class _Doubled(nn.Module):
    def forward(self, rows: Tensor) -> Tensor:
        return 2 * rows


class _Summed(nn.Module):
    def forward(self, cells: dict[str, tuple[Tensor, Tensor]]) -> Tensor:
        numbers, codes = cells["table"]
        return numbers.sum(1, keepdim=True) + codes.sum(1, keepdim=True)


def test_modules_and_nodes_may_follow_each_other() -> None:
    """All modules are translated at the end, and still each stands where it is needed."""
    graph = Graph(SCHEMA, {})
    summed = graph.module_of_cells(_Summed(), ["table"])
    shifted = graph.node("Add", summed, graph.constant(np.float64(1)))
    (doubled,) = graph.module_of_rows(_Doubled(), 1, shifted, 1)
    last = graph.node("Neg", doubled)
    model = graph.finished({"out": (last, TensorProto.DOUBLE, ["rows", 1])})
    session = onnxruntime.InferenceSession(model.SerializeToString())
    colours = np.array(["blue", "green", "red", "", "red"], dtype=object)
    found = session.run(["out"], {"val_0": np.arange(5.0), "colour": colours})[0]
    np.testing.assert_array_equal(found[:, 0], [-6, -4, -8, -8, -12])


@pytest.mark.parametrize("column", SCHEMA.columns, ids=lambda column: column.kind)
def test_a_table_of_one_kind_has_no_columns_of_the_other(column: Column) -> None:
    graph = Graph(TableSchema((column,), named=True), {})
    kinds = {"numbers": TensorProto.DOUBLE, "codes": TensorProto.INT64}
    ends = {name: (getattr(graph, name), kind, ["rows", "n"]) for name, kind in kinds.items()}
    session = onnxruntime.InferenceSession(graph.finished(ends).SerializeToString())
    given = np.zeros(4) if column.kind == "number" else np.array(["red"] * 4, dtype=object)
    found = dict(zip(ends, session.run(list(ends), {column.name: given}), strict=True))
    assert sorted(values.shape for values in found.values()) == [(4, 0), (4, 1)]
    assert torch.from_numpy(found["codes"]).dtype == torch.int64


class _OfZeros(nn.Module):
    """What an LSTM does: it begins with as many zeros as there are rows."""

    def forward(self, rows: Tensor) -> Tensor:
        layer = nn.functional.pad(torch.zeros(rows.shape[0], 1, dtype=rows.dtype), (0, 1))
        return layer + rows


def test_a_module_does_not_ask_a_later_one_for_the_number_of_rows() -> None:
    """It would wait for a result of its own."""
    graph = Graph(SCHEMA, {})
    (first,) = graph.module_of_rows(
        _OfZeros(), 2, graph.node("Concat", graph.numbers, graph.numbers, axis=1), 1
    )
    (second,) = graph.module_of_rows(_OfZeros(), 2, graph.node("Neg", first), 1)
    model = graph.finished({"out": (second, TensorProto.DOUBLE, ["rows", 2])})
    session = onnxruntime.InferenceSession(model.SerializeToString())
    colours = np.array(["blue"] * 4, dtype=object)
    found = session.run(["out"], {"val_0": np.arange(4.0), "colour": colours})[0]
    np.testing.assert_array_equal(found[:, 0], [0, -1, -2, -3])
