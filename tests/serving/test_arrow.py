"""Bodies of Arrow: their types come through, and nothing of them is believed."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow
import pytest

from echelon.data.schema import TableSchema
from echelon.serving.arrow import arrow_of, is_compressed, rows_of_arrow
from echelon.serving.refusal import Limits, Refusal
from tests.serving.malformed import stream_of

FRAME = pd.DataFrame({"size": [1.5, None], "kind": ["red", "blue"]})
SCHEMA = TableSchema.of(FRAME)
LIMITS = Limits(rows=5)


def test_types_come_through() -> None:
    columns = {
        "kind": pyarrow.array(["blue", None]).dictionary_encode(),
        "size": pyarrow.array([1, None], pyarrow.int32()),
    }
    table = SCHEMA.read(rows_of_arrow(stream_of(pyarrow.table(columns)), SCHEMA, LIMITS).frame())
    np.testing.assert_array_equal(table.numbers, [[1.0], [np.nan]])
    assert table.codes.tolist() == [[1], [0]]


@pytest.mark.parametrize(
    "held",
    [
        pyarrow.array([1.5, None, -0.0]),
        pyarrow.array([1.5, 2.5, 3.5], pyarrow.float16()),
        pyarrow.array([2**53 + 1, 7, -3]),
        pyarrow.array([255, 0, None], pyarrow.uint8()),
        pyarrow.array([True, None, False]),
        pyarrow.array(["1.5", None, "2"]),
        pyarrow.array([Decimal("1.5"), None, Decimal("2.0")]),
        pyarrow.array([dt.date(2024, 2, 29), None, dt.date(1960, 1, 1)]),
        pyarrow.array([0, None, 86_400_000_000], pyarrow.timestamp("us")),
        pyarrow.array([0, None, 86_400_000_000], pyarrow.timestamp("us", "Europe/Oslo")),
        pyarrow.array([3, None, 4]).dictionary_encode(),
        pyarrow.array([1.5, 2.5, 1.5]).dictionary_encode(),
    ],
    ids=lambda held: str(held.type),
)
def test_a_column_is_read_as_one_of_a_frame_is(held: pyarrow.Array) -> None:
    """Of every type, in one batch and in two."""
    table = pyarrow.table({"cell": held})
    frame = table.to_pandas(integer_object_nulls=True)
    schema = TableSchema.of(frame)
    expected = schema.read(frame)
    whole = rows_of_arrow(stream_of(table), schema, LIMITS)
    divided = pyarrow.concat_tables([table[:1], table[1:]])
    for rows in (whole, rows_of_arrow(stream_of(divided), schema, LIMITS)):
        for read in (schema.read_columns(rows.cells), schema.read(rows.frame())):
            np.testing.assert_array_equal(read.numbers, expected.numbers)
            np.testing.assert_array_equal(read.codes, expected.codes)


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
@pytest.mark.parametrize("packed", ["batch", "dictionary"])
def test_a_compressed_body_is_refused_before_it_is_unpacked(codec: str, packed: str) -> None:
    """20 MiB of zeros are 80 KiB of lz4."""
    kind = pyarrow.array(["red" * 1000] * 4)
    table = pyarrow.table({
        "size": pyarrow.array(np.zeros(4)),
        "kind": kind.dictionary_encode() if packed == "dictionary" else kind,
    })  # fmt: skip
    with pytest.raises(Refusal, match="must not be compressed"):
        rows_of_arrow(stream_of(table, codec), SCHEMA, LIMITS)
    rows_of_arrow(stream_of(table), SCHEMA, LIMITS)


def test_the_codec_is_read_from_every_message() -> None:
    table = pyarrow.table({"kind": pyarrow.array(["x"]).dictionary_encode()})
    for codec in (None, "zstd"):
        messages = pyarrow.ipc.MessageReader.open_stream(stream_of(table, codec))
        kinds = {m.type: is_compressed(m.metadata.to_pybytes()) for m in messages}
        assert kinds == {"schema": False, "dictionary": bool(codec), "record batch": bool(codec)}


def test_rows_without_bytes_are_counted_before_they_are_made() -> None:
    """A column of nulls has a length and no content."""
    table = pyarrow.table({"size": pyarrow.nulls(10**9), "kind": pyarrow.nulls(10**9)})
    with pytest.raises(Refusal, match="at most 5 rows"):
        rows_of_arrow(stream_of(table), SCHEMA, LIMITS)


def test_what_is_written_is_read() -> None:
    content = arrow_of({"size": [1.5], "kind": ["red"]})
    assert rows_of_arrow(content, SCHEMA, LIMITS).cells["kind"].tolist() == ["red"]


def test_what_a_stream_says_for_pandas_changes_nothing() -> None:
    """Of a column that it calls an index, nothing was left among the columns."""
    table = pyarrow.Table.from_pandas(FRAME.set_index("kind"))
    assert b'"index_columns": ["kind"]' in table.schema.metadata[b"pandas"]
    rows = rows_of_arrow(stream_of(table), SCHEMA, LIMITS)
    assert rows.cells["kind"].tolist() == ["red", "blue"]
