"""Bodies of JSON and CSV: cells arrive as they were written, and joining changes none."""

import base64
import csv
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


@pytest.mark.parametrize(
    "body",
    [
        b"kind,size\nred,1\nblue,2.5e-3\n", b"kind,size\nred,\nblue,x",
        b"\xef\xbb\xbfkind,size\nred,1",
        "kind,size\nr\u2028d,nan\n\x85, 1 ".encode(), b"kind,size\n,\n,\n",
    ],
)  # fmt: skip
def test_plain_lines_and_quoted_ones_are_read_alike(body: bytes) -> None:
    """Without quotes all cells are split at once; with one quote they are read one by one."""
    quoted = body.replace(b"kind,", b'"kind",')
    plain, slow = (rows_of_csv(each, SCHEMA, LIMITS) for each in (body, quoted))
    for name, cells in plain.cells.items():
        assert cells.dtype == slow.cells[name].dtype
        np.testing.assert_array_equal(cells, slow.cells[name])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"kind,size\n\nred,1,2\nred\n", "row 1 has 3"),
        (b"kind,size\nred\n1,1,1\n", "row 1 has 1"),
        (b"kind,size\n", "at least 1 row"), (b"kind,sise\nred,1\n", "did you mean 'size'"),
        (b"kind,kind\nred,1\n", "'kind' stands twice"),
        (b"kind,size\n" + b"x" * 140_000 + b",1\n", "field larger than field limit"),
    ],
)  # fmt: skip
def test_lines_without_quotes_are_refused_as_all_others(body: bytes, said: str) -> None:
    before = csv.field_size_limit(131_072)  # whoever has read a file before allows longer cells
    try:
        with pytest.raises(Refusal, match=said):
            rows_of_csv(body, SCHEMA, LIMITS)
    finally:
        csv.field_size_limit(before)


def test_lines_of_one_column_may_have_blank_ones_between_them() -> None:
    schema = TableSchema.of(pd.DataFrame({"size": [1.0, 2.0]}))
    assert rows_of_csv(b"size\n1\n\n2\n", schema, LIMITS).cells["size"].tolist() == [1.0, 2.0]
    assert of_json([{"size": 1}, {"size": 2}], schema).cells["size"].tolist() == [1.0, 2.0]


def test_numbers_are_those_that_python_reads() -> None:
    """Two parsers must not give two numbers: the quick one and that of Python, to the last bit."""
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal(2000) * 10.0 ** rng.integers(-300, 300, 2000)
    texts = [f"{number:.{digits}e}" for number in numbers for digits in (3, 16, 30)]
    limits = Limits(rows=len(texts))
    body = "[" + ",".join(f'{{"size":{text},"kind":null}}' for text in texts) + "]"
    given = rows_of_json(body.encode(), SCHEMA, limits).cells["size"]
    np.testing.assert_array_equal(given, list(map(float, texts)))
    lines = "kind,size\n" + "".join(f",{text}\n" for text in texts)
    given = rows_of_csv(lines.encode(), SCHEMA, limits).cells["size"]
    np.testing.assert_array_equal(given, list(map(float, texts)))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"1" * 400, "an object for one row, or a list of objects; got 1111"),
        (b'[{"size":1,"kind":null},' + b"1" * 400 + b"]", "row 2 must be an object"),
        (b'{"size":1,"kind":"\\ud800"}', "half of a character"),
        (b'{"size":NaN,"kind":null}', "NaN is no number of JSON"),
        (b'{"size":1,"kind":null', "Expecting"),
        (b"[" * 100_000, "nested deep"),
        (b'{"size":1,"kind":"\xff"}', "UTF-8"),
        (b'[{"size":1,"kind":null},{"size":1}]', "row 2 must have .* lacks 'kind'"),
        (b'[{"size":1,"kind":null},{"size":1,"kid":2}]', "did you mean 'kind'"),
    ],
)  # fmt: skip
def test_the_reason_is_the_same_whichever_parser_finds_it(body: bytes, said: str) -> None:
    with pytest.raises(Refusal, match=said):
        rows_of_json(body, SCHEMA, LIMITS)
