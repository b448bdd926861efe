"""From what stands on the command line to tables and values, with errors that name both."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

CHUNK_ROWS = 100_000
_IMAGE = "image"  # the column of images where the data are a folder of them


@dataclass(frozen=True)
class DataDescription:
    """Which data a command reads, and what their columns are.

    Parameters
    ----------
    path : Path
        A CSV or Parquet file, or a folder of images.
    target : str, optional
        The column that holds the labels.
    classes : sequence of str
        All labels, the lowest first; empty where they are numbers that say it themselves.
    drop : sequence of str
        Columns to leave out.
    weight, group : str, optional
        The columns of the rows' weights and groups.
    text, image : str, optional
        The columns that hold texts and paths of images.
    image_folder : Path, optional
        Where relative paths of images start; without it, that is where the data are.
    on_broken : {"raise", "skip"}
        What becomes of rows whose images cannot be read.

    Examples
    --------
    >>> described = DataDescription(Path("wine.csv"), "quality", weight="count", drop=("id",))
    >>> described.apart
    ['quality', 'count', 'id']
    """

    path: Path
    target: str | None = None
    classes: Sequence[str] = ()
    drop: Sequence[str] = ()
    weight: str | None = None
    group: str | None = None
    text: str | None = None
    image: str | None = None
    image_folder: Path | None = None
    on_broken: str = "raise"

    @property
    def apart(self) -> list[str]:
        """The columns that are no features."""
        named = [name for name in (self.target, self.weight, self.group) if name is not None]
        return list(dict.fromkeys([*named, *self.drop]))

    @property
    def image_column(self) -> str | None:
        """The column that holds images: the one that was named, or that of a folder of images."""
        return _IMAGE if self.image is None and self.path.is_dir() else self.image

    @property
    def columns_by_kind(self) -> dict[str, str | None]:
        """The columns that hold more than numbers and categories, as models name them."""
        return {"text": self.text, "image": self.image_column}

    # ---- cells as they stand in the file -----------------------------------------------------

    def cells(self) -> Any:
        """The whole table, its cells as they stand in the file; its rows are numbered from 0."""
        from echelon.data.files import read_table

        frame = read_table(self.path).reset_index(drop=True)
        if self.target is not None:
            require_column(frame, self.target, self.path)
        return frame

    def chunks(self) -> Iterator[Any]:
        """The same as frames of limited size, one after the other."""
        from echelon.data.files import read_chunks

        return read_chunks(self.path, CHUNK_ROWS)

    def with_located_images(self, frame: Any) -> Any:
        """The table with whole paths in its image column.

        Relative ones are looked for in the folder, which is that of the table unless another is
        given; where the data are a folder of images, it is that one.
        """
        column = self.image_column
        if column is None or column not in frame.columns:
            return frame
        place = self.image_folder or (self.path if self.path.is_dir() else self.path.parent)
        if not place.is_dir():
            raise ValueError(f"there is no folder of images {place}")
        found = frame[column].map(
            lambda path: str(place / str(path)) if str(path).strip() else None, na_action="ignore"
        )
        return frame.assign(**{column: found})

    def images(self, frame: Any) -> Any:
        """The paths of the images in a table; none where it has no such column."""
        column = self.image_column
        return () if column is None or column not in frame.columns else frame[column]

    def readable(self, frame: Any) -> tuple[Any, int]:
        """The rows whose images can be read, and how many others there are."""
        import numpy as np

        from echelon.data.kinds.image import find_broken

        images = self.images(frame)
        if self.on_broken == "raise" or not len(images):
            return frame, 0  # that a column is missing is said where it is needed
        broken = find_broken(images.to_numpy(dtype=object))
        kept = np.ones(len(frame), dtype=bool)
        kept[list(broken)] = False
        return frame[kept], len(broken)

    # ---- features and labels -----------------------------------------------------------------

    def table(self) -> Any:
        """The whole table, with numbers and dates in the features that hold such.

        The cells of other columns stay as they stand in the file; paths of images are whole.
        """
        from echelon.data.columns import settled
        from echelon.data.files import read_table

        if self.target is None:
            raise ValueError("--target is needed: the column to predict")
        if self.image_folder is not None and self.image_column is None:
            raise ValueError(
                f"--image-folder says where the images of a column are, and none was named; add "
                f"--image COLUMN, or leave out --image-folder {self.image_folder}"
            )
        media = [name for name in (self.text, self.image_column) if name is not None]
        frame = read_table(self.path)
        for name in (*self.apart, *media):
            require_column(frame, name, self.path)
        for name in media:
            if name in self.apart:
                raise ValueError(f"the column {name!r} cannot be both a text or image and left out")
        return self.with_located_images(settled(frame, apart=[*self.apart, *media]))

    def labelled(self, frame: Any) -> "LabelledRows":
        """The rows of :meth:`table` as a model takes them, without those that cannot be read."""
        from echelon.data.labels import typed_labels

        frame, skipped = self.readable(frame)
        if not len(frame):
            raise ValueError(f"none of the {skipped:,} images can be read")
        labels, named = typed_labels(frame[self.target], list(self.classes) or None)
        return LabelledRows(
            frame.drop(columns=self.apart),
            labels,
            named,
            read_weights(frame, self.weight),
            None if self.group is None else frame[self.group].to_numpy(),
            skipped,
        )

    def tasks(self, divisions: int, test_share: float) -> list[Any]:
        """The table, divided at random into training and test rows as often as asked."""
        from echelon.experiments import table_task

        rows = self.labelled(self.table())
        return [
            table_task(
                self.path.name, rows.features, rows.labels, classes=rows.named,
                groups=rows.groups, test_share=test_share, split_seed=number, text=self.text,
                image=self.image_column,
            )
            for number in range(divisions)
        ]  # fmt: skip


@dataclass(frozen=True)
class LabelledRows:
    """Rows of a table with what belongs to them, all of the same length n.

    Parameters
    ----------
    features : DataFrame
    labels : array, shape (n,)
    named : list or None
        All labels, the lowest first, where they were named.
    weights, groups : array, shape (n,), or None
    skipped : int
        How many rows were left out, as their images cannot be read.
    """

    features: Any
    labels: Any
    named: list[Any] | None
    weights: Any
    groups: Any
    skipped: int

    def __len__(self) -> int:
        return len(self.features)

    @cached_property
    def classes(self) -> list[Any]:
        """The labels that there are, the lowest first."""
        from echelon.data.labels import Labels

        classes: list[Any] = Labels.of(self.labels, self.named).classes.tolist()
        return classes

    def select(self, mask: Any) -> "LabelledRows":
        """The rows under a mask."""
        return replace(
            self,
            features=self.features[mask],
            labels=self.labels[mask],
            weights=None if self.weights is None else self.weights[mask],
            groups=None if self.groups is None else self.groups[mask],
        )

    def held_out(
        self, shares: Sequence[float], seed: int, *, text: str | None, image: str | None
    ) -> list[Any]:
        """Masks of rows for each share and, last, for the rest; groups and twins stay together."""
        import numpy as np

        from echelon.data.columns import gathered_remarks
        from echelon.data.labels import Labels
        from echelon.data.schema import TableSchema
        from echelon.data.splits import hold_out

        if any(not 0 < share < 1 for share in shares) or sum(shares) >= 1:
            raise ValueError(
                f"held-out shares must lie between 0 and 1 and leave rows; got {list(shares)}"
            )
        if not shares:  # the fit reads the rows, and need not find them read already
            return [np.ones(len(self), dtype=bool)]
        ranks = Labels.of(self.labels, self.classes).to_ranks(self.labels)
        with gathered_remarks():  # the fit says them
            table = TableSchema.of(self.features, text=text, image=image).read(self.features)
        generator = np.random.default_rng([seed, len(ranks)])
        rest = np.ones(len(ranks), dtype=bool)
        masks = []
        for share in shares:
            inside = np.flatnonzero(rest)
            some = hold_out(
                table.rows(inside), ranks[inside], share * len(ranks) / len(inside),
                groups=None if self.groups is None else np.asarray(self.groups)[inside],
                generator=generator,
            )  # fmt: skip
            mask = np.zeros(len(ranks), dtype=bool)
            mask[inside[some]] = True
            masks.append(mask)
            rest &= ~mask
        return [*masks, rest]


def read_weights(frame: Any, name: str | None) -> Any:
    """The weights of the rows, (n,), or None without a column of them."""
    if name is None:
        return None
    from echelon.data.columns import Column, Remarks, numbers_of

    remarks = Remarks()
    weights = numbers_of(frame[name], Column(name), remarks)
    if remarks.unread:
        raise ValueError(f"weights must be numbers: {remarks.sentence()}")
    return weights


def require_column(frame: Any, name: str, path: Path) -> None:
    """Raise where a file lacks a column, and say which it has."""
    if name not in frame.columns:
        raise ValueError(f"{path} has no column {name!r}; it has: {plain(list(frame.columns))}")


def require_images(fitted: Any, model: Path, described: DataDescription) -> None:
    """Raise where images are given to a model that takes none."""
    data, folder = described.path, described.image_folder
    if fitted.image_column is None and (data.is_dir() or folder is not None):
        what = f"{data} is a folder of them" if data.is_dir() else f"--image-folder is {folder}"
        raise ValueError(
            f"{model} was fitted without images, and {what}; give a table with its columns: "
            f"{plain([column.name for column in fitted.schema_.columns])}"
        )


def split_names(text: str | None) -> list[str]:
    """Names that stand with commas between them.

    Examples
    --------
    >>> split_names("low, mid,high"), split_names(None)
    (['low', 'mid', 'high'], [])
    """
    return [] if text is None else [part.strip() for part in text.split(",") if part.strip()]


def split_pairs(text: str | None, option: str) -> dict[str, str] | None:
    """Names with their values, with commas between them.

    Examples
    --------
    >>> split_pairs("sex=m, kind=red", "--reference")
    {'sex': 'm', 'kind': 'red'}
    """
    if text is None:
        return None
    pairs = [part.partition("=") for part in split_names(text)]
    wrong = [name for name, mark, value in pairs if not (name.strip() and mark and value.strip())]
    if wrong or not pairs:
        raise ValueError(f"{option} must be pairs such as sex=m,kind=red; got {text!r}")
    return {name.strip(): value.strip() for name, _, value in pairs}


def plain(values: list[Any]) -> str:
    """Values for a sentence, not too many of them.

    Examples
    --------
    >>> plain([1, 2, 3])
    '1, 2, 3'
    """
    shown = ", ".join(map(str, values[:20]))
    return shown if len(values) <= 20 else f"{shown}, ... ({len(values)} in all)"


def backbone_options(backbone: str | None, frozen: bool) -> dict[str, Any] | None:
    """What the estimator takes for --frozen."""
    if not frozen:
        return None
    if backbone is None or not backbone.startswith("hf:"):
        raise ValueError(
            f"--frozen is for pretrained text encoders, --backbone hf:NAME; got {backbone!r}"
        )
    return {"frozen": True}


def read_decision(text: str | None) -> Any:
    """A decision by its name, or a matrix of costs from a CSV file without a header."""
    from echelon.curve import DECISIONS

    if text is None or text in (*DECISIONS, "kappa"):
        return text
    path = Path(text)
    if not path.is_file():
        raise ValueError(
            f"--decision must be one of {', '.join((*DECISIONS, 'kappa'))}, or a CSV file with a "
            f"matrix of costs, a line for each true class; got {text!r}"
        )
    import pandas as pd

    try:
        return pd.read_csv(path, header=None, dtype=float).to_numpy()
    except Exception as error:
        raise ValueError(f"{path} is not a matrix of costs: {error}") from None
