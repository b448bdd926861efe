"""Sources: tables in files that are read in chunks and never held whole.

Invariant: a source says what to read, and reads only the names of columns until it is asked.
Parquet files can be read from any row group on, which is what an order by chance needs, and a fit
that goes on; other files are read from their beginning, and packed as Parquet first
(:mod:`echelon.data.packing`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from echelon.data.files import (
    CHUNK_ROWS,
    Paths,
    expand_paths,
    parquet_parts,
    read_chunks,
    shown,
)
from echelon.data.formats import Reading, look_at
from echelon.data.missing_codes import codes_by_column
from echelon.data.slices import Piece, Slice, SliceReader, is_measured, opened_parquet
from echelon.extras import require

_SLICE_ROWS = 65_536
_SLICE_CELLS = 2**22  # of a wide table at once
_FEWEST_ROWS = 1024


class Share(NamedTuple):
    """The units whose number by a salt lies from `low` to `high`, of those from 0 to 1."""

    salt: int
    low: float
    high: float


@dataclass(frozen=True)
class Source:
    """A table in files, and what its columns are for; :func:`scan` makes it.

    Parameters
    ----------
    paths : tuple of Path
        The files and folders.
    target : str
        The column of the labels.
    classes : tuple, optional
        All labels, the lowest first.
    drop : tuple of str
        Columns that are left out.
    weight, group : str, optional
        The columns of weights and of groups.
    reading : Reading
        What stands between cells, before decimals, and in which encoding.
    missing_codes : tuple of str
        Codes that stand for no answer.
    missing_target : {"drop", "error"}
        What becomes of rows without a label.
    keep_ids : bool
        Whether columns that look like ids are kept.
    shares : tuple of Share
        Which of the rows belong to it, by their hash; all of them without any.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rows.parquet"
    ...     pd.DataFrame({"size": [1.0, 2.0], "grade": [0, 1]}).to_parquet(path)
    ...     print(*Source((path,), "grade").features)
    size
    """

    paths: tuple[Path, ...]
    target: str
    classes: tuple[Any, ...] | None = None
    drop: tuple[str, ...] = ()
    weight: str | None = None
    group: str | None = None
    reading: Reading = field(default_factory=Reading)
    missing_codes: tuple[str, ...] = ()
    missing_target: str = "drop"
    keep_ids: bool = False
    shares: tuple[Share, ...] = ()

    def __post_init__(self) -> None:
        for name in self.apart:
            if name not in self.names:
                listed = ", ".join(self.names[:20]) + ", .." * (len(self.names) > 20)
                raise ValueError(f"{self.name} has no column {name!r}; it has: {listed}")
        if not self.features:
            raise ValueError(
                f"{self.name} has no column beside {', '.join(self.apart)}: there is nothing to "
                f"learn from"
            )

    def __repr__(self) -> str:
        return f"<Source {self.name}, target {self.target!r}>"

    @property
    def name(self) -> str:
        """The data as messages name them."""
        first, *others = self.paths
        return shown(first) + (f" and {len(others)} more" if others else "")

    @property
    def apart(self) -> list[str]:
        """The columns that are no features."""
        named = [name for name in (self.target, self.weight, self.group) if name is not None]
        return list(dict.fromkeys([*named, *self.drop]))

    @cached_property
    def names(self) -> list[str]:
        """All columns."""
        if self.is_parquet:
            return [*self._types]
        first = next(read_chunks(self.paths, reading=self.reading))
        return [str(name) for name in first.columns]

    @property
    def features(self) -> list[str]:
        """The columns to learn from."""
        return [name for name in self.names if name not in self.apart]

    @cached_property
    def codes(self) -> Mapping[str, tuple[str, ...]]:
        """What stands for no answer, by column."""
        others = [name for name in self.apart if name != self.target]
        return codes_by_column(self.missing_codes, self.names, others)

    def subset(self, salt: int, low: float, high: float) -> "Source":
        """The rows whose unit (a row with its twins, or a group) has a number in a range.

        Numbers lie from 0 to 1, and are drawn by a hash of the unit and the salt: whatever files
        the rows stand in, and in whatever order, the same rows are meant.
        """
        return replace(self, shares=(*self.shares, Share(salt, low, high)))

    # ---- Parquet -----------------------------------------------------------------------------

    @cached_property
    def is_parquet(self) -> bool:
        """Whether every file is a Parquet file, which can be read from any row group on."""
        return all(
            bool(parquet_parts(path)) if path.is_dir() else look_at(path).format == "Parquet"
            for path in self.paths
        )

    @cached_property
    def _files(self) -> list[tuple[Path, Mapping[str, Any]]]:
        """The Parquet files, each with the columns that the names of its folders give."""
        require("pyarrow", "Parquet files")
        import pyarrow.dataset

        files: list[tuple[Path, Mapping[str, Any]]] = []
        for path in self.paths:
            if not path.is_dir():
                files.append((path, {}))
                continue
            opened = pyarrow.dataset.dataset(
                [str(part) for part in parquet_parts(path)], format="parquet",
                partitioning="hive", partition_base_dir=str(path),
            )  # fmt: skip
            keys = pyarrow.dataset.get_partition_keys
            files += [
                (Path(fragment.path), keys(fragment.partition_expression))
                for fragment in opened.get_fragments()
            ]
        return files

    @cached_property
    def _footers(self) -> dict[Path, Any]:
        """What the end of each file says of it, which is read once."""
        return {}

    @cached_property
    def _types(self) -> dict[str, Any]:
        """The Arrow type of each column of the first file; None where a folder names it."""
        path, constants = self._files[0]
        with opened_parquet(path) as opened:
            types = {field.name: field.type for field in opened.schema_arrow}
            if len(types) < len(opened.schema_arrow):
                raise ValueError(
                    f"every column needs a name of its own, and {path} has several of one name; "
                    f"rename or remove one"
                )
        return {**types, **dict.fromkeys(constants)}

    @cached_property
    def pieces(self) -> list[Piece]:
        """The row groups of all Parquet files, in order."""
        pieces = []
        for path, constants in self._files:
            with opened_parquet(path) as opened:
                self._footers[path] = opened.metadata
                names = {*opened.schema_arrow.names, *constants}
                lacking = [name for name in self.names if name not in names]
                if lacking:
                    raise ValueError(
                        f"files that are read together must have the same columns, and {path} "
                        f"lacks the column {lacking[0]!r}"
                    )
                for group in range(opened.metadata.num_row_groups):
                    rows = opened.metadata.row_group(group).num_rows
                    if rows:
                        pieces.append(Piece(path, group, rows, constants))
        if not pieces:
            raise ValueError(f"{self.name} has columns but no rows")
        return pieces

    @property
    def slice_rows(self) -> int:
        """How many rows are read at once."""
        return min(_SLICE_ROWS, max(_FEWEST_ROWS, _SLICE_CELLS // len(self.names)))

    @cached_property
    def slices(self) -> list[Slice]:
        """The rows of all pieces, cut into what is read at once, in order."""
        step = self.slice_rows
        return [
            Slice(number, start, min(step, piece.rows - start))
            for number, piece in enumerate(self.pieces)
            for start in range(0, piece.rows, step)
        ]

    @property
    def undecided(self) -> list[str]:
        """The features whose type does not say all that a schema needs to know of them."""
        if not self.is_parquet:
            return self.features
        return [
            name
            for name in self.features
            if self._types[name] is None or not is_measured(self._types[name])
        ]

    # ---- reading -----------------------------------------------------------------------------

    def chunks(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """All rows in order, as frames of limited size; with `columns`, those alone."""
        if not self.is_parquet:
            for chunk in read_chunks(self.paths, CHUNK_ROWS, reading=self.reading):
                yield chunk if columns is None else chunk[list(columns)]
            return
        reader = self.reader(columns)
        for part in self.slices:
            yield reader.read(part)

    def reader(self, columns: Sequence[str] | None = None) -> SliceReader:
        """Something that reads slices; with `columns`, those alone."""
        names = list(self.names if columns is None else columns)
        return SliceReader(self.pieces, names, self.slice_rows, self._footers)


def scan(
    path: Paths,
    target: str,
    *,
    classes: Sequence[Any] | None = None,
    drop: Sequence[str] = (),
    weight: str | None = None,
    group: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    missing_codes: Sequence[str] = (),
    keep_ids: bool = False,
) -> Source:
    """A table in files that a model is fitted on without reading it into memory.

    Give it to ``fit`` in the place of X and y. Networks, boosted trees and the exact linear model
    read it in chunks; the other models read it into memory, and say what that takes.

    Parameters
    ----------
    path : str, Path or sequence of them
        Parquet files, folders of them or patterns such as ``"folder/*.parquet"``; other files are
        packed into a temporary folder first. This needs the extra `parquet`.
    target : str
        The column that holds the labels.
    classes : sequence, optional
        All labels, the lowest first. Needed for strings.
    drop : sequence of str
        Columns to leave out.
    weight, group : str, optional
        The columns of the rows' weights and groups. Rows of one group stay on one side of the
        division into training and validation rows; without groups, rows that are equal do.
    sep, decimal, encoding : str, optional
        How text files are read, where that is not to be found by looking.
    missing_codes : sequence of str
        What stands for no answer: "99" in every column, or "age=99" in one.
    keep_ids : bool
        Whether columns that look like ids are read as all others are.

    Examples
    --------
    >>> import tempfile
    >>> from echelon import CumulativeLinkModel
    >>> from echelon.data import make_friedman
    >>> data = make_friedman(500, num_classes=3)
    >>> frame = pd.DataFrame(data.features).rename(columns=str).assign(grade=data.ranks)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame.to_parquet(f"{folder}/rows.parquet")
    ...     model = CumulativeLinkModel().fit(scan(f"{folder}/*.parquet", target="grade"))
    >>> model.num_rows_
    500
    """
    return Source(
        tuple(expand_paths(path)),
        target,
        None if classes is None else tuple(classes),
        tuple(drop),
        weight,
        group,
        Reading(sep, decimal, encoding),
        tuple(missing_codes),
        keep_ids=keep_ids,
    )
