"""Tables: from the numbers, dates and categories of a row to the features of a network.

Invariant: what numbers become is decided once, on the training rows, and kept in the buffers of a
`TableEncoder`, which is saved, exported and differentiated with the network. Which cells
are numbers, dates and categories stands in the file of each of these kinds.
"""

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

if TYPE_CHECKING:
    from echelon.data.schema import RawTable, TableSchema

Scaling = Literal["quantile", "standard", "none"]
SCALINGS = ("quantile", "standard", "none")
NUM_KNOTS = 32  # of the quantile scaling

_FAR = 1000  # times as far from the median as the next one: no number of the same kind
_NARROWEST = 1e-300  # of a segment between two quantiles
_FEW = 256  # rows, whose segments are sooner found one after the other


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
        if scaling not in SCALINGS:
            raise ValueError(
                f"scaling must be one of {', '.join(map(repr, SCALINGS))}; got {scaling!r}"
            )
        self.num_numeric = num_numeric
        self.num_categories = num_categories
        self.scaling = scaling
        self.keeps_all = kept == list(range(num_numeric))
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
    def sizes(self) -> dict[str, Any]:
        """What a backbone must know of its features."""
        return {"num_features": self.num_features, "num_scaled": self.num_scaled}

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

    def feature_owners(self, schema: "TableSchema") -> list[str]:
        """The column that each feature comes from, (d,); none where nothing varies."""
        numeric = schema.numeric_owners
        owners = [numeric[i] for i in (*self.kept.tolist(), *self.indicators.tolist())]
        for column in schema.categorical:
            owners += [column.name] * len(column.categories)
        return owners

    @classmethod
    def of(cls, table: "RawTable", schema: "TableSchema", *, scaling: Scaling) -> "TableEncoder":
        """Decide on the training rows what numbers become."""
        numbers = table.numbers
        missing = np.isnan(numbers)
        measured = len(schema.measured)  # the parts of a date are missing where it is
        indicators = [i for i in range(measured) if 0 < missing[:, i].sum() < len(table)]
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
        kept = numbers if self.keeps_all else numbers[:, self.kept]
        centred = kept.double() - self.centre
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
            place = _segments(self.knots, columns)
            left, steepness = self.knots.gather(1, place), self.steepness.gather(1, place)
            passed = (place + ((columns - left) * steepness).clamp(0, 1)).T
        return (passed / self.knots.shape[1] - 0.5) * math.sqrt(12.0)


def _segments(knots: Tensor, columns: Tensor) -> Tensor:
    """The last of the knots (d, m) that lies below each number (d, n), and the first for none."""
    if columns.shape[1] < _FEW:
        return (torch.searchsorted(knots, columns) - 1).clamp(min=0)
    # Halving all at once, without new memory in each round: torch searches for one number after the
    # other, at three times the price.
    columns = columns.detach()
    width = 1 << (knots.shape[1] - 1).bit_length()
    ends = torch.nn.functional.pad(knots, (0, width - knots.shape[1]), value=math.inf)
    step = width // 2
    below = ends[:, step : step + 1] < columns
    place = below.long().mul_(step)
    middle, knot = torch.empty_like(place), torch.empty_like(columns)
    while step > 1:
        step //= 2
        torch.gather(ends, 1, torch.add(place, step, out=middle), out=knot)
        place.add_(torch.lt(knot, columns, out=below), alpha=step)
    return place
