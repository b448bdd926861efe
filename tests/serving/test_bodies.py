"""Bodies of JSON and CSV: cells arrive as they were written, and joining changes none."""

import base64
import json

import numpy as np
import pandas as pd
import pytest

from echelon.data.schema import TableSchema
from echelon.serving.bodies import ReceivedRows, rows_of_csv, rows_of_json
from echelon.serving.refusal import Limits, Refusal

FRAME = pd.DataFrame({"size": [1.5, 2.0, None], "kind": ["red", "blue", "red"]})
SCHEMA = TableSchema.of(FRAME)
LIMITS = Limits(rows=5)


def of_json(document: object, schema: TableSchema = SCHEMA) -> ReceivedRows:
    return rows_of_json(json.dumps(document).encode(), schema, LIMITS)


def test_the_order_of_columns_does_not_matter_and_null_is_missing() -> None:
    rows = of_json([{"kind": "red", "size": 1}, {"size": None, "kind": None}])
    table = SCHEMA.read(rows.frame())
    np.testing.assert_array_equal(table.numbers, [[1.0], [np.nan]])
    assert table.codes.tolist() == [[2], [0]]
    same = rows_of_csv(b"kind,size\nred,1\n,\n", SCHEMA, LIMITS)
    np.testing.assert_array_equal(SCHEMA.read(same.frame()).numbers, table.numbers)


def test_bodies_together_are_the_rows_of_each() -> None:
    """A float beside strings stays one, so that "1" and 1.0 are the same category either way."""
    schema = TableSchema.of(pd.DataFrame({"size": ["1", "2", "x"], "n": [1.0, 2.0, 3.0]}))
    bodies = [
        of_json({"size": 1.0, "n": 2}, schema), of_json({"size": "x", "n": "3"}, schema),
        rows_of_csv(b"size,n\n2,\n", schema, LIMITS),
    ]  # fmt: skip
    whole = schema.read(ReceivedRows.together(bodies).frame())
    alone = [schema.read(body.frame()) for body in bodies]
    np.testing.assert_array_equal(whole.numbers, np.concatenate([t.numbers for t in alone]))
    np.testing.assert_array_equal(whole.codes, np.concatenate([t.codes for t in alone]))
    assert whole.codes.ravel().tolist() == [1, 3, 2]


def test_too_many_rows_are_refused_before_all_are_in_memory() -> None:
    with pytest.raises(Refusal, match="at most 5 rows, and this one has 6 or more"):
        rows_of_json(b"[" + b"{}," * 100_000 + b"{}]", SCHEMA, LIMITS)
    with pytest.raises(Refusal, match="at most 5 rows, and this one has 6 or more"):
        rows_of_csv(b"size,kind\n" + b"1,red\n" * 1000, SCHEMA, LIMITS)


def test_an_image_is_bytes_and_never_a_path(tmp_path) -> None:
    """A path would let anyone ask which files the server has."""
    from PIL import Image

    from echelon.data.kinds.image import open_image

    path = tmp_path / "x.png"
    Image.new("RGB", (4, 3), (255, 0, 0)).save(path)
    schema = TableSchema.of(pd.DataFrame({"photo": [str(path)]}), image="photo")
    with pytest.raises(Refusal, match="column 'photo', row 1: an image must be the bytes"):
        of_json({"photo": str(path)}, schema)
    rows = of_json({"photo": base64.b64encode(path.read_bytes()).decode()}, schema)
    (cell,) = schema.read(rows.frame()).cells["image"]
    assert open_image(cell).size == (4, 3)
    assert open_image(cell).getpixel((0, 0)) == (255, 0, 0)


def test_a_text_is_a_string() -> None:
    schema = TableSchema.of(pd.DataFrame({"said": ["good", "bad"]}), text="said")
    assert of_json({"said": "well"}, schema).cells["said"].tolist() == ["well"]
    with pytest.raises(Refusal, match="a text must be a string or null; got int"):
        of_json({"said": 5}, schema)


@pytest.mark.parametrize("body", ['{"size": 1, "kind": "a", "size" : 2}', '[{"size":1,"size":2}]',
                                  '{"kind": "a:b", "size": 1, "kind": "c"}'])  # fmt: skip
def test_a_name_that_stands_twice_is_refused_however_it_is_written(body: str) -> None:
    with pytest.raises(Refusal, match="every name once"):
        rows_of_json(body.encode(), SCHEMA, LIMITS)
    rows = rows_of_json(b'{"size": 1, "kind": "a:b {c}"}', SCHEMA, LIMITS)
    assert rows.cells["kind"].tolist() == ["a:b {c}"]
