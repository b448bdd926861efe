"""Rows with their ranks, weights and groups: what is divided, and what a model is fitted on."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon.data.kinds.base import cell_kind
from echelon.data.kinds.image import OnBroken
from echelon.data.labels import Labels
from echelon.data.schema import RawTable, TableSchema
from echelon.data.splits import hold_out

_LISTED = 3


@dataclass(frozen=True)
class Rows:
    """n rows.

    Attributes
    ----------
    schema : TableSchema
        What their columns are.
    table : RawTable
        Their cells.
    ranks : array of int64, shape (n,)
    weight : array of float64, shape (n,), or None
        None where all rows count alike.
    groups : array, shape (n,), or None
    """

    schema: TableSchema
    table: RawTable
    ranks: NDArray[np.int64]
    weight: NDArray[np.float64] | None = None
    groups: NDArray[Any] | None = None

    @classmethod
    def of(
        cls,
        frame: Any,
        ranks: NDArray[np.int64],
        columns_by_kind: Mapping[str, str | None],
        groups: Any = None,
    ) -> "Rows":
        """Rows of a frame; `columns_by_kind` names the columns that hold texts and images."""
        schema = TableSchema.of(frame, **columns_by_kind)
        given = None if groups is None else np.asarray(groups)
        return cls(schema, schema.read(frame), ranks, groups=given)

    def __len__(self) -> int:
        return len(self.ranks)

    def select(self, chosen: Any) -> "Rows":
        """Some of the rows, by their places or by a mask."""
        return Rows(
            self.schema,
            self.table.rows(chosen),
            self.ranks[chosen],
            None if self.weight is None else self.weight[chosen],
            None if self.groups is None else self.groups[chosen],
        )


def divide(
    rows: Rows, shares: Sequence[float], seed: int | Sequence[int]
) -> list[NDArray[np.bool_]]:
    """Masks of the rows, (n,), for each share of them and, last, for the rest.

    Every division into subsets is made here: that of a fit, of a comparison, of a grid and of the
    paper's data. Groups and twins stay on one side, as :func:`echelon.data.splits.hold_out` tells.

    Parameters
    ----------
    rows : Rows
    shares : sequence of float
        Of all rows; what they leave is the rest.
    seed : int or sequence of int
        Of the random numbers, as numpy's `default_rng` takes it.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = Rows.of(pd.DataFrame({"size": np.arange(100.0)}), np.arange(100) % 4, {})
    >>> [int(mask.sum()) for mask in divide(rows, [0.2, 0.05], seed=0)]
    [20, 5, 75]
    """
    generator = np.random.default_rng(seed)
    rest = np.arange(len(rows))
    masks = []
    for share in shares:
        left = rows if len(rest) == len(rows) else rows.select(rest)
        of_left = share if left is rows else share * len(rows) / len(rest)
        held = hold_out(left.table, left.ranks, of_left, groups=left.groups, generator=generator)
        masks.append(_mask(len(rows), rest[held]))
        rest = rest[~held]
    return [*masks, _mask(len(rows), rest)]


def _mask(length: int, places: NDArray[np.int64]) -> NDArray[np.bool_]:
    mask = np.zeros(length, dtype=bool)
    mask[places] = True
    return mask


def hold_validation(rows: Rows, fraction: float, seed: int) -> tuple[Rows, Rows | None]:
    """Rows to be trained on, and a share that is held out to judge the fit by."""
    if fraction == 0:
        return rows, None
    held, rest = divide(rows, [fraction], seed)
    validation = rows.select(held)
    if validation.weight is not None and not validation.weight.any():
        validation = replace(validation, weight=np.ones_like(validation.weight))
    return rows.select(rest), validation


def class_weights(
    class_weight: Mapping[Any, float] | str | None,
    sample_weight: NDArray[np.float64] | None,
    ranks: NDArray[np.int64],
    labels: Labels,
) -> NDArray[np.float64] | None:
    """The weight of each class, (K,), as the parameter `class_weight` says; None where all are 1.

    ``"balanced"`` gives every class that occurs the same share of the weight of all rows.
    """
    if class_weight is None:
        return None
    per_class = np.ones(labels.num_classes)
    if isinstance(class_weight, Mapping):
        for label, value in class_weight.items():
            per_class[labels.to_ranks([label])[0]] = _checked_class_weight(label, value)
        if not per_class[np.unique(ranks)].any():
            raise ValueError("class_weight is 0 for every class that occurs: nothing would count")
    elif isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.bincount(ranks, weights=sample_weight, minlength=labels.num_classes)
        present = counts > 0
        per_class[present] = counts.sum() / (present.sum() * counts[present])
    else:
        names, example = labels.classes.tolist(), {labels.classes.tolist()[0]: 2.0}
        if isinstance(class_weight, (list, tuple)) and len(class_weight) == len(names):
            example = dict(zip(names, class_weight, strict=True))
        raise ValueError(
            f"class_weight must be 'balanced' or a mapping from label to weight, such as "
            f"{example}; got {class_weight!r}"
        )
    return per_class


def _checked_class_weight(label: Any, value: Any) -> float:
    if isinstance(value, (int, float, np.number)) and np.isfinite(value) and value >= 0:
        return float(value)
    raise ValueError(
        f"class_weight must be a finite number of at least 0 for every label; got {value!r} for "
        f"{label!r}"
    )


def row_weights(
    sample_weight: NDArray[np.float64] | None,
    per_class: NDArray[np.float64] | None,
    ranks: NDArray[np.int64],
) -> NDArray[np.float64] | None:
    """The weight of each row, (n,): its own times that of its class; None where all count alike."""
    if per_class is None:
        return sample_weight
    of_class: NDArray[np.float64] = per_class[ranks]
    return of_class if sample_weight is None else sample_weight * of_class


def broken_rows(
    cells_by_kind: Mapping[str, NDArray[Any]], on_broken: Mapping[str, OnBroken]
) -> tuple[dict[int, str], list[str]]:
    """The places of rows that hold a cell that cannot be read, with why, and the kinds of these.

    `on_broken` says by kind what is done. Of a kind with ``"raise"``, or that is not named, nothing
    is read yet: the first broken cell raises when it is needed.
    """
    for treatment in on_broken.values():
        if treatment not in ("raise", "skip"):
            raise ValueError(f"on_broken must be 'raise' or 'skip'; got {treatment!r}")
    broken: dict[int, str] = {}
    kinds = []
    for kind, cells in cells_by_kind.items():
        if on_broken.get(kind) != "skip":
            continue
        if unreadable := cell_kind(kind).find_broken(cells):
            broken = {**unreadable, **broken}
            kinds.append(kind)
    return broken, kinds


def without_broken(rows: Rows, on_broken: Mapping[str, OnBroken]) -> tuple[Rows, dict[int, str]]:
    """The rows whose cells can be read, and why the others cannot; see :func:`broken_rows`."""
    broken, kinds = broken_rows(rows.table.cells, on_broken)
    if not broken:
        return rows, {}
    reasons = "; ".join(list(broken.values())[:_LISTED])
    what = " and ".join(f"{kind}s" for kind in kinds)
    if len(broken) == len(rows):
        raise ValueError(f"none of the {len(broken)} {what} can be read: {reasons}")
    warnings.warn(
        f"{len(broken)} of {len(rows)} rows are left out, as their {what} cannot be read: "
        f"{reasons}" + ("; .." if len(broken) > _LISTED else ""),
        stacklevel=3,
    )
    kept = np.ones(len(rows), dtype=bool)
    kept[list(broken)] = False
    return rows.select(kept), broken
