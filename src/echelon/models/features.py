"""Columns as one matrix of numbers, for models that take such a matrix."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from echelon.data.kinds.tabular import TableEncoder
from echelon.data.rows import Rows
from echelon.data.schema import RawTable, TableSchema
from echelon.networks.rebuilding import rebuild

Matrix = NDArray[np.float64]


def require_table(rows: Rows, model: Any) -> None:
    """Raise where rows hold what a model of a matrix cannot read."""
    if not rows.table.is_plain:
        kinds = " and ".join(f"{part}s" for part in rows.schema.parts if part != "table")
        raise ValueError(
            f"{type(model).__name__} reads numbers and categories, and these rows hold {kinds}; "
            f"drop those columns, or fit an OrdinalClassifier"
        )


def fit_encoder(rows: Rows) -> TableEncoder:
    """Standardised numbers with their gaps filled, an indicator of gaps, and one-hot categories."""
    return TableEncoder.of(rows.table, rows.schema, scaling="standard")


@torch.no_grad()
def encoded(encoder: TableEncoder, table: RawTable) -> Matrix:
    """The features of rows, (n, d), in float64."""
    features = encoder(torch.from_numpy(table.numbers).double(), torch.from_numpy(table.codes))
    matrix: Matrix = features.double().numpy()
    return matrix


def column_ranges(table: RawTable, schema: TableSchema) -> list[tuple[float, float]]:
    """The median of each column of numbers, and how far from it numbers are believed.

    A column without two values has the one that it has, or 0; its reach is infinite.
    """
    encoder = TableEncoder.of(table, schema, scaling="standard")
    ranges = []
    for place in range(table.numbers.shape[1]):
        present = table.numbers[~np.isnan(table.numbers[:, place]), place]
        ranges.append((float(present[0]) if len(present) else 0.0, float("inf")))
    for place, centre, reach in zip(
        encoder.kept.tolist(), encoder.centre.tolist(), encoder.reach.tolist(), strict=True
    ):
        ranges[place] = centre, reach
    return ranges


def with_gaps(table: RawTable, schema: TableSchema) -> Matrix:
    """Numbers as they are, NaN where missing, and one-hot categories, (n, p + all categories)."""
    blocks: list[Matrix] = [table.numbers.astype(np.float64)]
    for i, column in enumerate(schema.categorical):
        known = np.arange(1, len(column.categories) + 1)
        blocks.append((table.codes[:, i, None] == known).astype(np.float64))
    return np.concatenate(blocks, axis=1)


def describe_encoder(encoder: TableEncoder) -> dict[str, Tensor]:
    """The tensors that :func:`rebuild_encoder` takes."""
    return dict(encoder.state_dict())


def rebuild_encoder(tensors: Mapping[str, Tensor], schema: TableSchema) -> TableEncoder:
    """An encoder from the tensors of a file, which are not trusted."""
    places = {name: read_places(tensors[name], len(schema.numeric)) for name in _PLACES}
    made = rebuild(
        lambda: TableEncoder(
            len(schema.numeric),
            tuple(len(column.categories) for column in schema.categorical),
            scaling="standard",
            **places,
        ),
        tensors,
    )
    assert isinstance(made, TableEncoder)
    return made


_PLACES = ("kept", "indicators")


def read_places(places: Tensor, count: int) -> list[int]:
    """Places of columns of numbers, each of them once, as a file says them."""
    if places.dtype != torch.int64 or places.dim() != 1:
        raise ValueError("its encoder does not say which columns it keeps")
    listed: list[int] = places.tolist()
    if listed and (min(listed) < 0 or max(listed) >= count or len(set(listed)) != len(listed)):
        raise ValueError("its encoder keeps columns that are not there")
    return listed
