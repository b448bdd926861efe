"""Bodies of Arrow: a stream of record batches, in and out (extra `parquet`).

A body is a stranger's: it is looked at message by message before any of it becomes columns.
Compressed buffers are refused, as a small body could unpack to any size; so are types that no
table holds, and everything is validated before it is used.
"""

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon.data.columns import Column
from echelon.data.kinds.base import CELL_KINDS
from echelon.data.schema import TableSchema
from echelon.extras import require
from echelon.serving.bodies import ReceivedRows, received_cells, refuse_columns, shown
from echelon.serving.refusal import BAD_REQUEST, WRONG_ROWS, Limits, Refusal

ARROW = "application/vnd.apache.arrow.stream"
_DICTIONARY, _BATCH = 2, 3  # kinds of messages: of the format's Message.fbs
_HEADER_TYPE, _HEADER = 1, 2  # fields of a message
_DICTIONARY_DATA = 1  # the field of a dictionary that is a record batch
_COMPRESSION = 3  # the field of a record batch
_MOST_MESSAGES = 10_000
_PLAIN = "biuf"  # the kinds of numpy types that are numbers


def rows_of_arrow(body: bytes, schema: TableSchema, limits: Limits) -> ReceivedRows:
    """The rows of a stream that has the columns of the model, in any order."""
    require("pyarrow", "bodies of Arrow")
    import pyarrow.ipc

    try:
        _refuse_compressed(pyarrow, body)
        with pyarrow.ipc.open_stream(pyarrow.BufferReader(body)) as stream:
            _require_columns(pyarrow, stream.schema, schema)
            table = _limited(stream, limits)
        table.validate(full=True)
        cells = {column.name: _cells(pyarrow.types, table, column) for column in schema.columns}
    except Refusal:
        raise
    except Exception as error:  # whatever damaged bytes lead a reader to
        reason = f"{type(error).__name__}: {error}"
        raise Refusal(
            BAD_REQUEST, f"the body must be a stream of Arrow, and is none: {reason:.200}"
        ) from None
    limits.require_rows(table.num_rows)
    return ReceivedRows(cells)


def _cells(types: Any, table: Any, column: Column) -> NDArray[Any]:
    """The cells of a column, (n,): numbers where all are, or objects."""
    held = table.column(column.name)
    is_number = types.is_integer(held.type) or types.is_floating(held.type)
    if is_number and not held.null_count:  # the way over pandas takes ten times as long
        numbers: NDArray[Any] = held.to_numpy()
        return numbers
    cells = held.to_pandas(integer_object_nulls=True, use_threads=False)
    if cells.dtype.kind in _PLAIN:
        return np.asarray(cells)
    return received_cells(cells.to_numpy(dtype=object), column)


def arrow_of(columns: dict[str, Any]) -> bytes:
    """Columns of one length as a stream of Arrow."""
    require("pyarrow", "bodies of Arrow")
    import pyarrow.ipc

    batch = pyarrow.RecordBatch.from_pydict(columns)
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _limited(stream: Any, limits: Limits) -> Any:
    """All batches, none of which may have more rows than are allowed."""
    import pyarrow

    batches, rows = [], 0
    for batch in stream:
        rows += batch.num_rows
        limits.require_rows(max(rows, 1))
        batches.append(batch)
    return pyarrow.Table.from_batches(batches, stream.schema)


def _require_columns(pyarrow: Any, came: Any, schema: TableSchema) -> None:
    names = [column.name for column in schema.columns]
    if sorted(came.names) != sorted(names):
        refuse_columns("the stream", came.names, names, "")
    types = pyarrow.types
    plain = (
        types.is_integer, types.is_floating, types.is_boolean, types.is_string,
        types.is_large_string, types.is_string_view, types.is_date, types.is_timestamp,
        types.is_decimal, types.is_null,
    )  # fmt: skip
    for column in schema.columns:
        held = came.field(column.name).type
        kind = held.value_type if types.is_dictionary(held) else held
        is_file = column.kind in CELL_KINDS and (
            types.is_binary(kind) or types.is_large_binary(kind)
        )
        if not is_file and not any(is_plain(kind) for is_plain in plain):
            raise Refusal(
                WRONG_ROWS, f"column {column.name!r} must hold numbers, strings, dates or "
                f"booleans; got the type {shown(str(held))}",
            )  # fmt: skip


def _refuse_compressed(pyarrow: Any, body: bytes) -> None:
    messages = pyarrow.ipc.MessageReader.open_stream(pyarrow.BufferReader(body))
    for _ in range(_MOST_MESSAGES):
        try:
            message = messages.read_next_message()
        except StopIteration:
            return
        if is_compressed(message.metadata.to_pybytes()):
            raise Refusal(
                BAD_REQUEST, "a stream of Arrow must not be compressed, and this one is; write it "
                "without a codec",
            )  # fmt: skip
    raise Refusal(BAD_REQUEST, f"a stream may have at most {_MOST_MESSAGES:,} messages")


def is_compressed(metadata: bytes) -> bool:
    """Whether the metadata of a message, a flatbuffer that was verified, name a codec."""
    message = int(struct.unpack_from("<I", metadata, 0)[0])
    kind_place = _field(metadata, message, _HEADER_TYPE)
    kind = metadata[kind_place] if kind_place is not None else 0
    place = _field(metadata, message, _HEADER)
    if place is None or kind not in (_DICTIONARY, _BATCH):
        return False
    batch = _followed(metadata, place)
    if kind == _DICTIONARY:
        data = _field(metadata, batch, _DICTIONARY_DATA)
        if data is None:
            return False
        batch = _followed(metadata, data)
    return _field(metadata, batch, _COMPRESSION) is not None


def _field(metadata: bytes, table: int, number: int) -> int | None:
    """Where a field of a table stands in a flatbuffer; None where it has the default."""
    layout = table - int(struct.unpack_from("<i", metadata, table)[0])
    (size,) = struct.unpack_from("<H", metadata, layout)
    entry = 4 + 2 * number
    if entry >= size:
        return None
    (offset,) = struct.unpack_from("<H", metadata, layout + entry)
    return table + offset if offset else None


def _followed(metadata: bytes, place: int) -> int:
    return place + int(struct.unpack_from("<I", metadata, place)[0])
