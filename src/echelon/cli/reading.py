"""From what stands on the command line to tables and values, with errors that name both."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from echelon.terminal import quoted

CHUNK_ROWS = 100_000
_IMAGE = "image"  # the column of images where the data are a folder of them


@dataclass(frozen=True)
class DataDescription:
    """Which data a command reads, and what their columns are.

    Parameters
    ----------
    path : Path or sequence of Path
        Files of a table, patterns of such, a folder of Parquet files or of images, a MedMNIST file,
        or ``-``.
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
    group_pattern : str, optional
        A regular expression that takes the group of each row out of the name of its image.
    image_folder : Path, optional
        Where relative paths of images start; without it, that is where the data are.
    on_broken : {"raise", "skip"}
        What becomes of rows whose images cannot be read.
    sep, decimal, encoding : str, optional
        How text files are read, where that is not to be found by looking.
    missing_target : {"drop", "error"}
        What becomes of rows without a label.
    keep_ids : bool
        Whether columns that look like ids are read as all others are.
    sheet : str, optional
        The sheet of an Excel file, by name or by number from 1 on.
    missing_codes : sequence of str
        What stands for no answer: codes of all columns, such as "99", or COLUMN=CODE.

    Examples
    --------
    >>> described = DataDescription(Path("wine.csv"), "quality", weight="count", drop=("id",))
    >>> described.apart
    ['quality', 'count', 'id']
    """

    path: Path | Sequence[Path]
    target: str | None = None
    classes: Sequence[str] = ()
    drop: Sequence[str] = ()
    weight: str | None = None
    group: str | None = None
    text: str | None = None
    image: str | None = None
    image_folder: Path | None = None
    on_broken: str = "raise"
    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing_target: str = "drop"
    keep_ids: bool = False
    sheet: str | None = None
    missing_codes: Sequence[str] = ()
    group_pattern: str | None = None

    @property
    def reading(self) -> Any:
        """How text files are read."""
        from echelon.data.formats import Reading

        return Reading(self.sep, self.decimal, self.encoding, self.sheet)

    @cached_property
    def paths(self) -> list[Path]:
        """The files that are read."""
        from echelon.data.files import expand_paths

        return expand_paths(self.path if isinstance(self.path, Path) else [*self.path])

    @property
    def name(self) -> str:
        """The data as messages name them."""
        from echelon.data.files import shown

        first, *others = self.paths
        return shown(first) + (f" and {len(others)} more" if others else "")

    @cached_property
    def is_image_folder(self) -> bool:
        """Whether the data are a folder of images."""
        from echelon.data.files import parquet_parts

        return self.paths[0].is_dir() and not parquet_parts(self.paths[0])

    @cached_property
    def holds_arrays(self) -> bool:
        """Whether the data are a file of images, which have no paths of their own."""
        return self.paths[0].suffix.lower() == ".npz"

    @property
    def apart(self) -> list[str]:
        """The columns that are no features."""
        named = [name for name in (self.target, self.weight, self.group) if name is not None]
        return list(dict.fromkeys([*named, *self.drop]))

    @property
    def image_column(self) -> str | None:
        """The column that holds images: the one that was named, or that of images themselves."""
        is_given = self.is_image_folder or self.holds_arrays
        return _IMAGE if self.image is None and is_given else self.image

    @property
    def columns_by_kind(self) -> dict[str, str | None]:
        """The columns that hold more than numbers and categories, as models name them."""
        return {"text": self.text, "image": self.image_column}

    # ---- cells as they stand in the file -----------------------------------------------------

    def cells(self) -> Any:
        """The whole table, its cells as they stand in the file; its rows are numbered from 0."""
        from echelon.data.files import read_table

        frame = read_table(self.paths, self.reading).reset_index(drop=True)
        if self.target is not None and self.target not in frame.columns:
            looks = self.looks()  # it may stand in another sheet, or between other separators
            require_column(frame, self.target, self.name + (f" ({looks})" if looks else ""))
        return self.with_codes(frame)

    def with_codes(self, frame: Any) -> Any:
        """The table with its codes for no answer beside it, and without them in the target."""
        if not self.missing_codes:
            return frame
        from echelon.data.missing_codes import MISSING_CODES, codes_by_column, emptied

        named = (self.weight, self.group, self.text, self.image_column)
        others = [*self.drop, *(name for name in named if name is not None)]
        codes = {**codes_by_column(self.missing_codes, [*frame.columns], others)}
        of_labels = codes.pop(self.target, ()) if self.target is not None else ()
        if of_labels:
            frame = frame.assign(**{str(self.target): emptied(frame[self.target], of_labels)})
        frame.attrs[MISSING_CODES] = codes
        return frame

    @property
    def missing_labels(self) -> list[str]:
        """The codes that stand for no label."""
        pairs = [spec.rpartition("=") for spec in self.missing_codes]
        return [code.strip() for name, _, code in pairs if name.strip() in ("", self.target)]

    def chunks(self) -> Iterator[Any]:
        """The same as frames of limited size, one after the other."""
        from echelon.data.files import read_chunks

        return read_chunks(self.paths, CHUNK_ROWS, reading=self.reading)

    def with_located_images(self, frame: Any) -> Any:
        """The table with whole paths in its image column.

        Relative ones are looked for in the folder, which is that of the table unless another is
        given; where the data are a folder of images, it is that one.
        """
        column = self.image_column
        if column is None or column not in frame.columns or self.holds_arrays:
            return frame
        first = self.paths[0]
        place = self.image_folder or (first if self.is_image_folder else first.parent)
        if not place.is_dir():
            raise ValueError(f"there is no folder of images {place}")
        located = frame[column].map(
            lambda path: str(place / str(path)) if str(path).strip() else None, na_action="ignore"
        )
        return frame.assign(**{column: located})

    def images(self, frame: Any) -> Any:
        """The paths of the images in a table; none where it has no such column."""
        column = self.image_column
        has_paths = column is not None and column in frame.columns and not self.holds_arrays
        return frame[column] if has_paths else ()

    def readable(self, frame: Any) -> tuple[Any, int]:
        """The rows whose cells can be read, and how many others there are."""
        import numpy as np

        from echelon.data.rows import broken_rows

        cells: dict[str, Any] = {
            kind: frame[name].to_numpy(dtype=object)
            for kind, name in self.columns_by_kind.items()
            if name in frame.columns  # that one is missing is said where it is needed
        }
        if self.on_broken == "raise" or not cells:
            return frame, 0
        treatment: Any = self.on_broken
        broken, _ = broken_rows(cells, dict.fromkeys(cells, treatment))
        kept = np.ones(len(frame), dtype=bool)
        kept[list(broken)] = False
        return frame[kept], len(broken)

    # ---- features and labels -----------------------------------------------------------------

    def table(self) -> Any:
        """The whole table, with numbers and dates in the features that hold such.

        The cells of other columns stay as they stand in the file; paths of images are whole.
        """
        from echelon.data.columns import settled
        from echelon.data.identifiers import KEEP

        if self.target is None:
            raise ValueError("--target is needed: the column to predict")
        if self.image_folder is not None and self.image_column is None:
            raise ValueError(
                f"--image-folder says where the images of a column are, and none was named; add "
                f"--image COLUMN, or leave out --image-folder {self.image_folder}"
            )
        media = [name for name in (self.text, self.image_column) if name is not None]
        frame = self.cells_
        for name in (*self.apart, *media):
            require_column(frame, name, self.name)
        for name in media:
            if name in self.apart:
                raise ValueError(f"the column {name!r} cannot be both a text or image and left out")
        frame = frame.drop(columns=[*self.left_out_])
        frame = settled(frame, apart=[*self.apart, *media])
        frame.attrs[KEEP] = True  # what is to be left out is no longer there
        return self.with_located_images(frame)

    @cached_property
    def cells_(self) -> Any:
        """What :meth:`cells` gives, read once."""
        return self.cells()

    @cached_property
    def left_out_(self) -> dict[str, str]:
        """The columns that name rows instead of describing them, and why; unless they are kept."""
        from echelon.data.identifiers import identifier_reason

        if self.keep_ids:
            return {}
        frame = self.cells_
        spared = {*self.apart, *(name for name in self.columns_by_kind.values() if name)}
        candidates = [name for name in frame if name not in spared]
        alone = {
            name: reason
            for name in candidates
            if (reason := identifier_reason(name, frame[name])) is not None
        }
        has_others = len(alone) < len(candidates) or any(self.columns_by_kind.values())
        return alone if has_others else {}  # what is alone is all there is to learn from

    def check(self, most: int | None = None) -> Any:
        """What a look at the table finds; with `most`, at so many of its rows."""
        from echelon.data.checking import check_table

        frame = self.cells_
        for name in self.apart:
            require_column(frame, name, self.name)
        if most is not None and len(frame) > most:
            frame = frame.sample(most, random_state=0).sort_index()
        roles = dict.fromkeys(self.drop, "left out by --drop")
        roles |= {name: "weights" for name in (self.weight,) if name is not None}
        roles |= {name: "groups" for name in (self.group,) if name is not None}
        named = {name: kind for kind, name in self.columns_by_kind.items() if name is not None}
        return check_table(
            frame, target=self.target, classes=self.classes, apart=roles, keep_ids=self.keep_ids,
            named=named,
        )  # fmt: skip

    def looks(self) -> str:
        """What the first of the files was found to be, where that is not what programs write."""
        from echelon.data.formats import look_at
        from echelon.data.workbooks import sheet_in_words

        first = self.paths[0]
        if first.is_dir():
            return ""
        look = look_at(first, self.reading)
        sheet = sheet_in_words(first, self.sheet) if look.format == "Excel" else ""
        return ", ".join(filter(None, [look.in_words, sheet]))

    def labelled(self, frame: Any) -> "LabelledRows":
        """The rows of :meth:`table` as a model takes them, without those that cannot be read."""
        from echelon.data.labels import typed_labels

        frame, skipped = self.readable(frame)
        if not len(frame):
            raise ValueError(f"none of the {skipped:,} images can be read")
        labels, named = typed_labels(frame[self.target], list(self.classes) or None)
        frame, labels, unlabelled = self.with_labels(frame, labels)
        self.require_order(labels, named)
        return LabelledRows(
            frame.drop(columns=self.apart),
            labels,
            named,
            read_weights(frame, self.weight),
            self.groups(frame),
            skipped,
            unlabelled,
        )

    def groups(self, frame: Any) -> Any:
        """The group of each row, (n,), or None: from a column, or from the names of the images."""
        if self.group_pattern is None:
            return None if self.group is None else frame[self.group].to_numpy()
        from echelon.data.groups import groups_of_names

        if self.group is not None:
            raise ValueError(
                f"a row has one group: give --group {self.group} or --group-pattern "
                f"{self.group_pattern}, not both"
            )
        if self.image_column is None or self.holds_arrays:
            raise ValueError(
                "--group-pattern takes groups out of the names of images, and there is no column "
                "of paths: add --image COLUMN, or leave it out"
            )
        return groups_of_names(frame[self.image_column], self.group_pattern)

    def with_labels(self, frame: Any, labels: Any) -> tuple[Any, Any, int]:
        """The rows that have a label, these labels, and how many rows have none."""
        missing = labels.isna().to_numpy()
        count = int(missing.sum())
        if count == len(labels):
            raise ValueError(f"no row of {self.name} has a label in the column {self.target!r}")
        if count and self.missing_target == "error":
            raise ValueError(
                f"{count:,} rows of {self.name} have no label in the column {self.target!r}, the "
                f"first of them row {int(missing.argmax()) + 1}; --missing-target drop leaves them "
                f"out"
            )
        return (frame, labels, 0) if not count else (frame[~missing], labels[~missing], count)

    def require_order(self, labels: Any, named: list[Any] | None) -> None:
        """Raise, in the words of the command line, where the order of the labels is not known."""
        if named is not None:
            where = f"the column {self.target!r} of {self.name}"
            require_known(labels, named, where, "--classes", "add it there in its place")
            return
        is_ordered = getattr(labels.dtype, "ordered", False)
        texts = [label for label in labels.unique().tolist() if isinstance(label, str)]
        if texts and not is_ordered:
            from echelon.data.matching import variants

            twice = next(iter(variants(texts).values()), None)
            note = (
                f"; {' and '.join(map(repr, twice))} differ only by case or spaces, and count as "
                f"one with --classes"
                if twice
                else ""
            )
            raise ValueError(
                f"the labels in the column {self.target!r} are strings, whose order is not known: "
                f"name them with --classes, the lowest first, as in --classes low,mid,high, or, "
                f"where they hold commas, one a line in a file, --classes @FILE; found "
                f"{plain([repr(text) for text in texts])}{note}"
            )

    def tasks(self, divisions: int, test_share: float) -> list[Any]:
        """The table, divided at random into training and test rows as often as asked."""
        from echelon.experiments import table_task

        rows = self.labelled(self.table())
        columns = {kind: name for kind, name in self.columns_by_kind.items() if name is not None}
        return [
            table_task(
                self.paths[0].name, rows.features, rows.labels, classes=rows.named,
                groups=rows.groups, test_share=test_share, split_seed=number,
                columns_by_kind=columns,
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
        Labels, among which there may be others than the classes.
    named : list or None
        All labels, the lowest first, where they were named.
    weights, groups : array, shape (n,), or None
    skipped : int
        How many rows were left out, as their images cannot be read.
    unlabelled : int
        How many rows were left out, as they have no label.
    """

    features: Any
    labels: Any
    named: list[Any] | None
    weights: Any
    groups: Any
    skipped: int
    unlabelled: int = 0

    def __len__(self) -> int:
        return len(self.features)

    @cached_property
    def known(self) -> Any:
        """The labels that there are, in rank order."""
        from echelon.data.labels import Labels

        return Labels.of(self.labels, self.named)

    @property
    def classes(self) -> list[Any]:
        """The labels that there are, the lowest first."""
        classes: list[Any] = self.known.classes.tolist()
        return classes

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What ``fit`` takes: X, y, the weights and the groups."""
        return self.features, self.labels, self.weights, self.groups

    @property
    def in_memory(self) -> "LabelledRows":
        """These rows as a table, which they are."""
        return self

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
        self, shares: Sequence[float], seed: int, columns_by_kind: Mapping[str, str | None]
    ) -> list[Any]:
        """Masks of rows for each share and, last, for the rest; groups and twins stay together."""
        import numpy as np

        from echelon.data.columns import gathered_remarks
        from echelon.data.rows import Rows, divide

        if any(not 0 < share < 1 for share in shares) or sum(shares) >= 1:
            raise ValueError(
                f"held-out shares must lie between 0 and 1 and leave rows; got {list(shares)}"
            )
        if not shares:  # the fit reads the rows, and need not find them read already
            return [np.ones(len(self), dtype=bool)]
        ranks = self.known.to_ranks(self.labels)
        with gathered_remarks():  # the fit says them
            rows = Rows.of(self.features, ranks, columns_by_kind, self.groups)
        return [*divide(rows, shares, [seed, len(rows)])]


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


def require_known(
    labels: Any, classes: Sequence[Any], where: str, option: str, remedy: str
) -> None:
    """Raise where labels are no classes, name some of them, and say how one can be added."""
    unknown = labels[~labels.isin(list(classes)).to_numpy()]
    if len(unknown):
        counted = unknown.value_counts()
        rows = "1 row has" if len(unknown) == 1 else f"{len(unknown):,} rows have"
        shown = ", ".join(f"{label!r} ({count:,})" for label, count in counted.head(5).items())
        raise ValueError(
            f"{rows} a label in {where} that is not among {option}: {shown}; they are "
            f"{plain(list(classes))}: {remedy}, or remove those rows or empty their labels"
        )


def require_column(frame: Any, name: str, path: Path | str) -> None:
    """Raise where a file lacks a column, and say which it has and which may be meant."""
    if name not in frame.columns:
        from difflib import get_close_matches

        from echelon.data.matching import fold

        near = get_close_matches(fold(name), [fold(str(column)) for column in frame.columns], 1)
        meant = [str(column) for column in frame.columns if fold(str(column)) in near]
        hint = f"; did you mean {meant[0]!r}?" if meant else ""
        raise ValueError(
            f"{path} has no column {name!r}; it has: {plain(list(frame.columns))}{hint}"
        )


def require_images(fitted: Any, model: Path, described: DataDescription) -> None:
    """Raise where images are given to a model that takes none."""
    is_folder, folder = described.is_image_folder, described.image_folder
    if fitted.image_column is None and (is_folder or described.holds_arrays or folder is not None):
        what = f"--image-folder is {folder}"
        if is_folder or described.holds_arrays:
            what = f"{described.name} is a {'folder' if is_folder else 'file'} of them"
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


def read_classes(text: str | None) -> list[str]:
    """The classes that were named: with commas between them, or one a line in @FILE.

    Examples
    --------
    >>> read_classes("low, mid,high")
    ['low', 'mid', 'high']
    """
    if text is None or not text.startswith("@"):
        return split_names(text)
    path = Path(text[1:])
    if not path.is_file():
        raise ValueError(
            f"there is no file {path} with classes; --classes @FILE names one that has a class a "
            f"line, the lowest first"
        )
    from echelon.data.formats import encoding_of

    content = path.read_bytes()
    lines = content.decode(encoding_of(content, path)).splitlines()
    classes = [line.strip() for line in lines if line.strip()]
    if len(classes) < 2:
        raise ValueError(f"{path} names {len(classes)} classes, and at least 2 are needed")
    return classes


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
    """Values for a sentence, not too many of them; one with a comma in it stands in quotes.

    Examples
    --------
    >>> plain([1, 2, 3])
    '1, 2, 3'
    >>> print(plain(["no", "yes, a little"]))
    no, 'yes, a little'
    """
    shown = ", ".join(map(quoted, values[:20]))
    return shown if len(values) <= 20 else f"{shown}, ... ({len(values)} in all)"


def backbone_options(backbone: str | None, frozen: bool) -> dict[str, Any] | None:
    """What the estimator takes for --frozen."""
    if not frozen:
        return None
    from echelon.networks.table import BACKBONES, FROZEN, backbone_row

    if backbone is None or backbone_row(backbone).frozen_pace is None:
        listed = " or ".join(row.shown for row in BACKBONES.values() if row.frozen_pace is not None)
        raise ValueError(
            f"--frozen is for pretrained encoders, --backbone {listed}; got {backbone!r}"
        )
    return {FROZEN: True}


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
