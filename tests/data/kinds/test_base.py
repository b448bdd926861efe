"""Every kind of cell against the same properties."""

import numpy as np
import pandas as pd
import pytest
import torch

from echelon.data.columns import KINDS as COLUMN_KINDS
from echelon.data.inputs import Inputs
from echelon.data.kinds.base import CELL_KINDS, KINDS, cell_kind, input_options
from echelon.data.schema import TableSchema
from echelon.data.splits import hold_out
from echelon.networks.table import backbone_row

CELLS = {
    "text": ["a text of many words, and one that ends " + "well " * i for i in range(12)],
    "image": [np.full((8, 8), i * 20, dtype=np.uint8) for i in range(12)],
}


def column(kind: str) -> "pd.Series":
    cells = np.empty(12, dtype=object)
    cells[:] = CELLS[kind]
    return pd.Series(cells, name="c")


@pytest.fixture(params=CELL_KINDS)
def kind(request) -> str:
    return request.param


def test_every_kind_has_a_backbone_that_reads_it() -> None:
    assert {row.name: backbone_row(row.backbone).kind for row in KINDS.values()} == {
        name: name for name in KINDS
    }
    assert len(set(COLUMN_KINDS)) == len(COLUMN_KINDS)
    assert cell_kind(CELL_KINDS[0]).name == CELL_KINDS[0]


def test_cells_are_read_selected_and_divided(kind: str) -> None:
    frame = pd.DataFrame({"c": column(kind), "x": np.arange(12.0)})
    schema = TableSchema.of(frame, **{kind: "c"})
    assert schema.parts == ("table", kind)
    table = schema.read(frame)
    chosen = table.rows([3, 5])
    assert list(chosen.cells) == [kind]
    assert chosen.cells[kind][1] is table.cells[kind][5]
    twice = schema.read(pd.concat([frame, frame.assign(x=-1.0)]))
    held = hold_out(twice, np.zeros(24, int), 0.3, generator=np.random.default_rng(0))
    assert held.any()
    assert (held[:12] == held[12:]).all()  # the same cell stays on one side


def test_an_encoding_comes_back_from_its_description(kind: str) -> None:
    row = backbone_row(KINDS[kind].backbone)
    known = cell_kind(kind)
    cells = known.read(column(kind))
    encoding = known.learn(cells, row.encoding, "", {})
    again = known.rebuild(encoding.describe())
    taken, other = (each.encode(cells).take(np.array([2, 0])) for each in (encoding, again))
    assert torch.equal(taken, other)
    assert again.sizes == encoding.sizes
    example = encoding.example(2)
    assert example.dtype == taken.dtype
    fixed = [i for i in range(1, taken.dim()) if i not in encoding.free]
    assert [example.shape[i] for i in fixed] == [taken.shape[i] for i in fixed]
    made_up = pd.Series(encoding.made_up(4, np.random.default_rng(0)), dtype=object)
    assert len(encoding.encode(known.read(made_up)).take(np.arange(4))) == 4


def test_rows_on_demand_know_their_content(kind: str) -> None:
    known = cell_kind(kind)
    cells = known.read(column(kind))
    encoding = known.learn(cells, backbone_row(KINDS[kind].backbone).encoding, "", {})
    same, other = (Inputs({kind: encoding.encode(cells[rows])}) for rows in ([0, 1], [0, 2]))
    assert len(same) == 2
    assert same.digest() == Inputs({kind: encoding.encode(cells[:2])}).digest() != other.digest()
    assert set(same.take(np.array([0]))) == {kind}


def test_a_column_has_one_kind() -> None:
    frame = pd.DataFrame({"c": ["a", "b"]})
    with pytest.raises(ValueError, match="'c' cannot hold both texts and images"):
        TableSchema.of(frame, text="c", image="c")
    with pytest.raises(TypeError, match="named as one of text, image; got 'sound'"):
        TableSchema.of(frame, sound="c")


def test_options_of_reading_are_told_from_those_of_what_is_read() -> None:
    found = input_options({"image": {"size": 8, "workers": 2}, "text": {"workers": 2}})
    assert found.reading == {"image": {"workers": 2}, "text": {}}
    assert found.encoding == {"image": {"size": 8}, "text": {"workers": 2}}  # which it refuses
    assert input_options(None) == ({}, {})


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"images": {}}, "must be of the kinds text, image; got 'images': did you mean 'image'"),
        ({"table": {"scaling": "none"}}, "must be of the kinds text, image; got 'table'"),
        ({"text": 64}, "the inputs of text must be a mapping from option to value; got 64"),
        ("text", r"inputs must be a mapping from kind \(text, image\) to options.*got 'text'"),
    ],
)
def test_options_that_are_not_by_kind_are_refused(inputs, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        input_options(inputs)
