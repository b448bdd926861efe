"""Packing: a source that can only be read from its beginning becomes one of Parquet.

A text file has no row groups to choose among. So its cells are read once more when it is known what
they are, and written as numbers, moments and names to a temporary folder, which goes with whoever
holds it.
"""

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.columns import MEASURED, gathered_remarks
from echelon.data.formats import Reading
from echelon.data.kinds.categories import names_of
from echelon.data.missing_codes import emptied
from echelon.data.schema import TableSchema
from echelon.data.source import Source
from echelon.extras import require

_NAME = "rows.parquet"


class PackedFolder:
    """A temporary folder that is removed with the last who holds it, or with the process."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="echelon-"))
        self._remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def remove(self) -> None:
        """Remove it now."""
        self._remove()


def pack(
    source: Source, schema: TableSchema, rank_of: Mapping[Any, int]
) -> "tuple[Source, PackedFolder]":
    """The same rows in one Parquet file, and the folder that it stands in.

    The target becomes ranks, missing ones missing; columns that the schema does not have are left
    out.

    Parameters
    ----------
    source : Source
    schema : TableSchema
    rank_of : mapping from cell to int
        The rank of each cell of the target.
    """
    require("pyarrow", "sources")
    import pyarrow
    import pyarrow.parquet

    folder = PackedFolder()
    place = folder.path / _NAME
    writer = None
    try:
        for chunk in source.chunks():
            with gathered_remarks():  # the fit says them
                table = pyarrow.table(_typed_columns(chunk, source, schema, rank_of))
            if writer is None:
                writer = pyarrow.parquet.ParquetWriter(place, table.schema, compression="lz4")
            writer.write_table(table)
    except BaseException:
        folder.remove()
        raise
    finally:
        if writer is not None:
            writer.close()
    packed = replace(
        source, paths=(place,), drop=(), reading=Reading(), missing_codes=(), keep_ids=True
    )
    return packed, folder


def _typed_columns(
    chunk: pd.DataFrame, source: Source, schema: TableSchema, rank_of: Mapping[Any, int]
) -> dict[str, Any]:
    import pyarrow

    table = schema.read(chunk)
    columns: dict[str, Any] = {}
    for i, column in enumerate(schema.measured):
        values = table.numbers[:, i].astype(np.float64)
        columns[column.name] = pyarrow.array(MEASURED[column.kind].typed(values))
    for column in schema.categorical:
        names = names_of(emptied(chunk[column.name], column.missing_codes))
        columns[column.name] = pyarrow.array(names, pyarrow.string())
    target = emptied(chunk[source.target], source.codes.get(source.target, ()))
    ranks = ranks_of(target, rank_of)
    columns[source.target] = pyarrow.array(ranks, pyarrow.int64(), mask=ranks < 0)
    if source.weight is not None:
        columns[source.weight] = pyarrow.array(weights_of(chunk[source.weight]))
    if source.group is not None:
        columns[source.group] = pyarrow.array(names_of(chunk[source.group]), pyarrow.string())
    return columns


def ranks_of(column: "pd.Series[Any]", rank_of: Mapping[Any, int]) -> NDArray[np.int64]:
    """The ranks of the cells of a target, (n,), -1 where a cell is no label.

    Examples
    --------
    >>> ranks_of(pd.Series(["low", None, "high"]), {"low": 0, "high": 1})
    array([ 0, -1,  1])
    """
    places, distinct = pd.factorize(column)
    ranks = [rank_of.get(cell, -1) for cell in np.asarray(distinct).tolist()]
    return np.array([*ranks, -1], dtype=np.int64)[places]


def weights_of(column: "pd.Series[Any]") -> NDArray[np.float64]:
    """The weights of rows, (n,), which must be numbers of at least 0."""
    from echelon.data.columns import Column, Remarks, numbers_of

    remarks = Remarks()
    weights = numbers_of(column, Column(str(column.name)), remarks).astype(np.float64)
    if remarks.unread:
        raise ValueError(f"weights must be numbers: {remarks.sentence()}")
    if np.isnan(weights).any() or (weights < 0).any():
        raise ValueError(
            f"weights must be finite numbers of at least 0, and the column {column.name!r} holds "
            f"{'missing ones' if np.isnan(weights).any() else weights.min()}; mend those rows"
        )
    return weights
