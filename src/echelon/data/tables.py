"""From tables as people have them to tensors, and the encoder that belongs to the model.

Invariant: what a column means (its kind, its categories) is decided once, on the training rows, and
kept in a `TableSchema`; what its numbers become is decided once too, and kept in the buffers of a
`TableEncoder`, which is saved, exported and differentiated with the network.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from echelon.data.columns import (
    KINDS,
    MAX_CATEGORIES,
    UNKNOWN,
    Column,
    Kind,
    Remarks,
    array_of_numbers,
    as_array,
    codes_of,
    decide_column,
    frame_of,
    images_of,
    numbers_of,
    refuse_twins,
    single_column,
    stack,
    texts_of,
)

__all__ = [
    "KINDS", "MAX_CATEGORIES", "UNKNOWN", "Column", "RawTable", "Scaling", "TableEncoder",
    "TableSchema",
]  # fmt: skip

Scaling = Literal["quantile", "standard", "none"]

NUM_KNOTS = 32  # of the quantile scaling

_FAR = 1000  # times as far from the median as the next one: no number of the same kind
_NARROWEST = 1e-300  # of a segment between two quantiles
_SCALINGS = ("quantile", "standard", "none")


@dataclass(frozen=True)
class RawTable:
    """A table as arrays: numbers (n, p) with NaN where missing, and category codes (n, q).

    `texts` and `images` are (n,) cells of the one column of each kind, None without it.
    """

    numbers: NDArray[Any]
    codes: NDArray[np.int64]
    texts: NDArray[Any] | None = None
    images: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def is_plain(self) -> bool:
        """Whether there are neither texts nor images."""
        return self.texts is None and self.images is None

    def plain(self) -> "RawTable":
        """The same rows without their texts and images."""
        return self if self.is_plain else RawTable(self.numbers, self.codes)

    def rows(self, selected: Any) -> "RawTable":
        """Some of the rows."""
        return RawTable(
            self.numbers[selected],
            self.codes[selected],
            None if self.texts is None else self.texts[selected],
            None if self.images is None else self.images[selected],
        )

    def chunks(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Tensors of numbers and codes of at most `size` rows each, in order."""
        for start in range(0, max(len(self), 1), size):
            part = slice(start, start + size)
            yield torch.from_numpy(self.numbers[part]), torch.from_numpy(self.codes[part])


class TableSchema:
    """The columns of a table, and how to read them from a frame or an array.

    Parameters
    ----------
    columns : sequence of Column
    named : bool
        Whether the names are the user's; columns of arrays are only counted.

    Examples
    --------
    >>> frame = pd.DataFrame({"size": [1.5, None], "colour": ["red", "blue"]})
    >>> schema = TableSchema.of(frame)
    >>> schema.read(frame).codes.tolist()
    [[2], [1]]
    >>> schema.read(pd.DataFrame({"colour": ["green"], "size": [3]})).codes.tolist()
    [[0]]
    >>> TableSchema.of(frame, text="colour").read(frame).texts.tolist()
    ['red', 'blue']
    """

    def __init__(self, columns: tuple[Column, ...], named: bool) -> None:
        self.columns = columns
        self.named = named

    def of_kind(self, kind: Kind) -> list[Column]:
        """The columns of one kind."""
        return [column for column in self.columns if column.kind == kind]

    @property
    def numeric(self) -> list[Column]:
        """Columns whose cells become numbers: numbers, booleans and dates."""
        return [column for column in self.columns if column.kind in ("number", "date")]

    @property
    def categorical(self) -> list[Column]:
        """Columns of categories."""
        return self.of_kind("category")

    @property
    def parts(self) -> tuple[str, ...]:
        """What rows consist of: some of "table" (numbers, dates, categories), "text", "image"."""
        kinds = {column.kind for column in self.columns}
        has_table = bool(kinds & {"number", "date", "category"})
        return (*(["table"] if has_table else []), *(k for k in ("text", "image") if k in kinds))

    @classmethod
    def of(cls, table: Any, *, text: str | None = None, image: str | None = None) -> "TableSchema":
        """Decide what the columns of the training rows are.

        Parameters
        ----------
        table : DataFrame or array, shape (n, columns)
            With `text` or `image` also a Series or a list of texts, paths or pictures.
        text, image : str, optional
            The column that holds texts, and the one that holds paths of images.
        """
        if text is not None and text == image:
            raise ValueError(f"the column {text!r} cannot hold both texts and images")
        asked: dict[str, Kind] = {}
        if text is not None:
            asked[text] = "text"
        if image is not None:
            asked[image] = "image"
        named = isinstance(table, (pd.DataFrame, pd.Series))
        if len(asked) == 1 and not isinstance(table, pd.DataFrame):
            ((name, kind),) = asked.items()
            table = single_column(table, name)
            if isinstance(table, pd.DataFrame):
                asked = {str(table.columns[0]): kind}
        if not isinstance(table, pd.DataFrame):
            array = as_array(table)
            if array.dtype.kind in "biuf" and not asked:
                columns = tuple(Column(f"x{i}") for i in range(array.shape[1]))
                return cls(columns, named=False)
            table = frame_of(array)
            return cls(_decide_all(table, asked), named=False)
        refuse_twins(table)
        if table.shape[1] == 0:
            raise ValueError("the table has 0 feature(s) (columns); a minimum of 1 is required")
        if len(table) == 0:
            raise ValueError("X has 0 sample(s) (rows) while a minimum of 1 is required")
        return cls(_decide_all(table, asked), named=named)

    def read(self, table: Any) -> RawTable:
        """Read rows that have these columns; in a frame, their order does not matter."""
        if self.parts in (("text",), ("image",)) and not isinstance(table, pd.DataFrame):
            name = self.columns[0].name
            table = single_column(table, name)
            if isinstance(table, pd.DataFrame):
                table = table.set_axis([name], axis=1)
        if not isinstance(table, pd.DataFrame):
            array = as_array(table)
            if array.shape[1] != len(self.columns):
                raise ValueError(
                    f"X has {array.shape[1]} features, but OrdinalClassifier is expecting "
                    f"{len(self.columns)} features as input"
                )
            plain = self.parts == ("table",) and not self.categorical and array.dtype.kind in "biuf"
            if plain and all(column.kind == "number" for column in self.columns):
                numbers = array_of_numbers(array)
                return RawTable(numbers, np.zeros((len(numbers), 0), dtype=np.int64))
            table = frame_of(array)
        names = [column.name for column in self.columns]
        if self.named:
            table = table.rename(columns=str)
            refuse_twins(table)
            missing = [name for name in names if name not in table.columns]
            if missing:
                raise ValueError(
                    f"the table lacks the column {missing[0]!r}"
                    + (f" and {len(missing) - 1} others" if len(missing) > 1 else "")
                    + f"; it must have all of: {', '.join(names)}"
                )
        elif table.shape[1] != len(names):
            raise ValueError(
                f"X has {table.shape[1]} features, but OrdinalClassifier is expecting "
                f"{len(names)} features as input"
            )
        else:
            table = table.set_axis(names, axis=1)
        rows, remarks = len(table), Remarks()
        text, image = self.of_kind("text"), self.of_kind("image")
        read = RawTable(
            stack([numbers_of(table[c.name], c, remarks) for c in self.numeric], rows, np.float64),
            stack([codes_of(table[c.name], c) for c in self.categorical], rows, np.int64),
            texts_of(table[text[0].name]) if text else None,
            images_of(table[image[0].name]) if image else None,
        )
        remarks.say()
        return read


def _decide_all(table: pd.DataFrame, asked: dict[str, Kind]) -> tuple[Column, ...]:
    names = [str(name) for name in table]
    for name, kind in asked.items():
        if name not in names:
            raise ValueError(
                f"there is no {kind} column {name!r}; the columns are: {', '.join(names)}"
            )
    remarks = Remarks()
    columns = tuple(
        Column(name, asked[name])
        if name in asked
        else decide_column(name, table.iloc[:, i].rename(name), remarks)
        for i, name in enumerate(names)
    )
    remarks.say()
    return columns


class TableEncoder(nn.Module):
    """From raw numbers and category codes to the features of a network.

    A number is scaled, a missing one takes the place of the median, and columns with missing
    values get an indicator each; categories become one-hot, all zeros for the unknown. Columns
    that had a single value in training are left out. A number that lies a thousand times farther
    from the median than any that is nearer, such as the 1e20 that stands for a missing value in
    some files, counts as if it lay where those end: it must not squeeze them into one point.

    Parameters
    ----------
    num_numeric : int
        p, the columns of numbers.
    num_categories : tuple of int
        How many categories each categorical column has.
    scaling : {"quantile", "standard", "none"}
        ``"quantile"`` maps each column to a uniform distribution of unit variance, linearly
        between quantiles; ``"standard"`` subtracts the median and divides by the standard
        deviation; ``"none"`` leaves the numbers as they are, those far away too.
    kept, indicators : sequence of int
        Columns of numbers that are kept, and those that get an indicator.
    """

    unbounded = ("reach",)  # infinite where nothing lies far away

    centre: Tensor
    reach: Tensor
    scale: Tensor
    kept: Tensor
    indicators: Tensor
    knots: Tensor
    steepness: Tensor

    def __init__(
        self,
        num_numeric: int,
        num_categories: tuple[int, ...],
        *,
        scaling: Scaling,
        kept: list[int],
        indicators: list[int],
    ) -> None:
        super().__init__()
        if scaling not in _SCALINGS:
            raise ValueError(
                f"scaling must be one of {', '.join(map(repr, _SCALINGS))}; got {scaling!r}"
            )
        self.num_numeric = num_numeric
        self.num_categories = num_categories
        self.scaling = scaling
        size = len(kept)
        self.register_buffer("kept", torch.tensor(kept, dtype=torch.long))
        self.register_buffer("indicators", torch.tensor(indicators, dtype=torch.long))
        # All of this is float64, so that a column may have any unit and two large numbers that are
        # near each other stay two.
        self.register_buffer("centre", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("reach", torch.full((size,), torch.inf, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(size, dtype=torch.float64))
        # Of the segments between quantiles: where each begins, and one over its width.
        segments = NUM_KNOTS - 1 if scaling == "quantile" else 0
        self.register_buffer("knots", torch.zeros(size, segments, dtype=torch.float64))
        self.register_buffer("steepness", torch.zeros(size, segments, dtype=torch.float64))

    @property
    def num_scaled(self) -> int:
        """How many of the first features are scaled numbers."""
        return len(self.kept)

    @property
    def num_features(self) -> int:
        """d, how many features come out."""
        return max(1, len(self.kept) + len(self.indicators) + sum(self.num_categories))

    def feature_names(self, schema: "TableSchema") -> list[str]:
        """What each feature is, (d,)."""
        numeric = [column.name for column in schema.numeric]
        names = [numeric[i] for i in self.kept.tolist()]
        names += [f"{numeric[i]} is missing" for i in self.indicators.tolist()]
        for column in schema.categorical:
            names += [f"{column.name} = {category}" for category in column.categories]
        return names or ["nothing varies"]

    @classmethod
    def of(cls, table: RawTable, schema: TableSchema, *, scaling: Scaling) -> "TableEncoder":
        """Decide on the training rows what numbers become."""
        numbers = table.numbers
        missing = np.isnan(numbers)
        indicators = [i for i in range(numbers.shape[1]) if 0 < missing[:, i].sum() < len(table)]
        summaries, kept = [], []
        for i in range(numbers.shape[1]):
            present = numbers[~missing[:, i], i].astype(np.float64)
            if len(present) and present.min() < present.max():
                kept.append(i)
                summaries.append(present)
        encoder = cls(
            numbers.shape[1],
            tuple(len(column.categories) for column in schema.categorical),
            scaling=scaling,
            kept=kept,
            indicators=indicators,
        )
        for place, present in enumerate(summaries):
            encoder._fit_column(place, present, schema.numeric[kept[place]].name)
        return encoder

    def _fit_column(self, place: int, present: NDArray[np.float64], name: str) -> None:
        # The centre also fills in for missing values, so it is the median, not the mean.
        with np.errstate(over="ignore"):
            centre = float(np.median(present))
        if not np.isfinite(centre):  # the mean of two huge numbers in the middle
            centre = float(np.quantile(present, 0.5, method="lower"))
        self.centre[place] = centre
        if self.scaling == "none":
            if np.abs(present).max() > np.finfo(np.float32).max:
                raise ValueError(
                    f"column {name!r} holds {present[np.abs(present).argmax()]:g}, which is too "
                    f"large for a network; scale its numbers, or leave out scaling='none'"
                )
            return
        with np.errstate(over="ignore"):
            deviations = present - centre
        away = np.sort(np.abs(deviations[deviations != 0]))
        if not np.isfinite(away[-1]):
            raise ValueError(
                f"column {name!r} runs from {present.min():g} to {present.max():g}, farther than "
                f"a difference can say; divide its numbers by 1e10, or drop it"
            )
        # Those that lie far beyond at least half of the others, with nothing in between.
        half = (len(away) - 1) // 2
        gaps = np.flatnonzero(away[half + 1 :] / _FAR > away[half:-1])
        if len(gaps):
            reach = float(away[half + gaps[0]])
            self.reach[place] = reach
            deviations = deviations.clip(-reach, reach)
        largest = float(np.abs(deviations).max())
        # Divided by the largest first, as squares of very large or small numbers are lost.
        self.scale[place] = largest * (
            1.0 if self.scaling == "quantile" else float(np.std(deviations / largest))
        )
        if self.scaling != "quantile":
            return
        knots = np.quantile(deviations / largest, np.linspace(0, 1, NUM_KNOTS))
        self.knots[place] = torch.from_numpy(knots[:-1])
        # Where knots coincide the column has a step.
        self.steepness[place] = torch.from_numpy(1 / np.maximum(np.diff(knots), _NARROWEST))

    def forward(self, numbers: Tensor, codes: Tensor) -> Tensor:
        """Features (n, d) of numbers (n, p) and codes (n, q)."""
        centred = numbers[:, self.kept].double() - self.centre
        centred = torch.where(torch.isnan(centred), 0.0, centred)
        if self.scaling == "none":
            filled = (centred + self.centre).float()
        else:
            scaled = centred.clamp(-self.reach, self.reach) / self.scale
            filled = (self._to_uniform(scaled) if self.scaling == "quantile" else scaled).float()
        parts = [filled]
        if len(self.indicators):
            parts.append(torch.isnan(numbers[:, self.indicators]).float())
        for i, size in enumerate(self.num_categories):
            known = torch.arange(1, size + 1, device=codes.device)
            parts.append((codes[:, i : i + 1] == known).float())
        if sum(part.shape[-1] for part in parts) == 0:  # a table in which nothing varies
            parts.append(torch.zeros(len(numbers), 1, device=numbers.device))
        return torch.cat(parts, -1)

    def _to_uniform(self, x: Tensor) -> Tensor:
        if torch.compiler.is_exporting():  # ONNX cannot search, so every segment is looked at
            passed = ((x.unsqueeze(-1) - self.knots) * self.steepness).clamp(0, 1).sum(-1)
        else:
            columns = x.T.contiguous()  # (d, n)
            # The segment that holds a number; one on the edge of two belongs to the lower.
            place = (torch.searchsorted(self.knots, columns) - 1).clamp(min=0)
            left, steepness = self.knots.gather(1, place), self.steepness.gather(1, place)
            passed = (place + ((columns - left) * steepness).clamp(0, 1)).T
        return (passed / self.knots.shape[1] - 0.5) * math.sqrt(12.0)
