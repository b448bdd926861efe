"""What `predict` says of rows: a table of results for each chunk, wherever that is computed.

Invariant: what a row gets does not depend on the chunk, the file or the process that it is in.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from echelon.cli.reading import DataDescription, plain, read_decision, split_names
from echelon.cli.risks import read_risk
from echelon.cli.writing import is_parquet, refuse_inputs, written_table

OUTSIDE = "outside"

_COVERAGE = 0.9  # of intervals, where a model has them and nothing else was asked
_SCORE = "\0score"  # a column that no file can have


@dataclass(frozen=True)
class Asked:
    """What of `predict` concerns rows, as it stands on the command line.

    Parameters
    ----------
    keep : str, optional
        Columns of the data to repeat, with commas between them.
    risks : sequence of str
        Probabilities to add, such as "P(y<=2)".
    decision : str, optional
        How a curve becomes a label.
    coverage : float, optional
        Of intervals.
    safe : bool
        Whether texts are made harmless for spreadsheets.
    """

    keep: str | None = None
    risks: Sequence[str] = ()
    decision: str | None = None
    coverage: float | None = None
    safe: bool = False


@dataclass
class Scorer:
    """Results of the rows of some data, chunk by chunk, counting them.

    Parameters
    ----------
    fitted : CurveClassifier
    asked : Asked
    described : DataDescription
        The data that the chunks come from.
    is_single : bool
        Whether the data are a sentence or an image, and no file.
    """

    fitted: Any
    asked: Asked
    described: DataDescription
    is_single: bool = False
    rows: int = field(default=0, init=False)
    skipped: int = field(default=0, init=False)
    outside: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        classes = self.fitted.classes_.tolist()
        self.classes = [f"probability_{label}" for label in classes]
        self.risks = [read_risk(text, classes) for text in self.asked.risks]
        self.coverage = self.asked.coverage
        if self.coverage is None and self.fitted.conformal_ is not None:
            self.coverage = _COVERAGE
        self.labels = ["prediction", *(("lower", "upper") if self.coverage is not None else ())]
        self.kept = split_names(self.asked.keep)
        _refuse_same(self.kept, self.results)

    # ---- which columns -----------------------------------------------------------------------

    @property
    def results(self) -> list[str]:
        """The columns that are computed."""
        return [*self.labels, *(risk.name for risk in self.risks), *self.classes, OUTSIDE]

    @cached_property
    def repeated(self) -> list[str]:
        """The columns of the data that are repeated: those asked for, and the name of an image."""
        image = self.fitted.image_column
        is_folder = not self.is_single and self.described.is_image_folder
        return [*([image] if is_folder and image not in self.kept else []), *self.kept]

    @property
    def columns(self) -> list[str]:
        """The columns of every table of results."""
        return [*self.repeated, *self.results]

    @cached_property
    def brought(self) -> dict[str, Any]:
        """The types of pyarrow of repeated columns, where the data bring such."""
        from echelon.data.files import arrow_types

        if self.is_single or not self.repeated:
            return {}
        types = arrow_types(self.described.paths, self.described.reading)
        return {name: types[name] for name in self.repeated if name in types}

    def types(self, out: Path) -> dict[str, Any]:
        """The types in a file of all columns that hold no probabilities."""
        kind = {"b": "bool", "i": "int64", "u": "uint64", "f": "float64"}
        label = kind.get(self.fitted.classes_.dtype.kind, "string")
        texts = dict.fromkeys([*self.repeated, OUTSIDE], "string")
        brought = self.brought if is_parquet(out) else {}
        return {**dict.fromkeys(self.labels, label), **texts, **brought}

    # ---- rows --------------------------------------------------------------------------------

    def table(self, frame: Any, out: Path) -> Any:
        """The results of the next rows, a frame of :attr:`columns`, to be written to `out`."""
        import pandas as pd

        chunk = frame.reset_index(drop=True)  # a Parquet file may bring rows of one name
        for name in self.kept:
            if name not in chunk.columns:
                raise ValueError(
                    f"--keep names the column {name!r}, and {self.described.name} has: "
                    f"{plain(list(chunk.columns))}"
                )
        readable, unread = chunk, 0
        if not self.is_single:
            located = self.described.with_located_images(chunk)
            refuse_inputs(out, self.described.images(located))
            readable, unread = self.described.readable(located)
        table = self._results(readable) if len(readable) else pd.DataFrame(columns=self.results)
        if unread:  # as objects, labels that are whole numbers stay such beside empty cells
            table = table.astype(dict.fromkeys(self.labels, object)).reindex(chunk.index)
        types = self.brought if is_parquet(out) else {}
        for place, name in enumerate(self.repeated):
            cells = chunk[name] if name in types else _as_texts(chunk[name])
            table.insert(place, name, cells)
        self.skipped += unread
        self.rows += len(chunk)
        return table

    def _results(self, frame: Any) -> Any:
        import pandas as pd

        fitted = self.fitted
        read = fitted.schema_.read(frame)
        curve = fitted.curve_of_rows(read)
        if self.described.on_broken == "raise":
            fitted.refuse_undefined(curve, frame, first_row=self.rows + 1)
        probabilities = curve.probabilities.double().cpu().numpy()
        columns = {"prediction": fitted.label(curve, read_decision(self.asked.decision))}
        if self.coverage is not None:
            ends = fitted.interval_ranks(probabilities, self.coverage)
            defined = pd.notna(columns["prediction"])
            for i, name in enumerate(("lower", "upper")):
                labels = pd.Series(fitted.labels_.from_ranks(ends[:, i]))
                columns[name] = labels.where(defined, None).to_numpy()
        columns |= {risk.name: risk.of(probabilities) for risk in self.risks}
        columns |= dict(zip(self.classes, probabilities.T, strict=True))
        columns[OUTSIDE] = self._outside(frame, read)
        self.outside += int((columns[OUTSIDE] != "").sum())
        return pd.DataFrame(columns, index=frame.index)

    def _outside(self, frame: Any, read: Any) -> Any:
        """The columns in which rows lie outside what the model was trained on."""
        from echelon.data.outside import outside_columns

        try:
            return outside_columns(self.fitted.schema_, self.fitted.columns_, frame, read)
        except (LookupError, TypeError, AttributeError) as error:
            raise ValueError(
                f"the model is damaged: its columns are not described ({error})"
            ) from None

    # ---- files -------------------------------------------------------------------------------

    def written(self, chunks: Iterable[Any], out: Path, *, top: int | None = None) -> Iterator[int]:
        """Write the results of chunks to a file; after each, how many rows were read.

        With `top`, only so many rows are written: those of the largest risk first, and without a
        risk those of the highest expected class.
        """
        short = [*self.classes, *(risk.name for risk in self.risks)]
        best: Any = None
        with written_table(
            out, self.columns, self.types(out), short=short, safe=self.asked.safe
        ) as write:
            for chunk in chunks:
                table = self.table(chunk, out)
                if top is None:
                    write(table)
                else:
                    by = self.risks[0].name if self.risks else self.classes
                    best = _highest(best, table, by, top)
                yield self.rows
            if best is not None:
                write(best.drop(columns=_SCORE))


def _refuse_same(kept: Sequence[str], results: Sequence[str]) -> None:
    for name in kept:
        if name in results:
            raise ValueError(
                f"--keep names the column {name!r}, which is also the name of a result; rename it"
            )


def _as_texts(column: Any) -> Any:
    """A column of the data as text, empty where missing."""
    from echelon.data.cells import is_missing

    return [
        None if not isinstance(cell, str) and is_missing(cell) else str(cell) for cell in column
    ]


def _highest(best: Any, table: Any, by: str | list[str], top: int) -> Any:
    """The rows of the largest risk so far; without a risk, of the highest expected class."""
    import numpy as np
    import pandas as pd

    if isinstance(by, str):
        score = table[by]
    else:
        score = pd.Series(table[by].to_numpy(dtype=float) @ np.arange(len(by)), index=table.index)
    table = table.assign(**{_SCORE: score})
    both = table if best is None or not len(best) else pd.concat([best, table], ignore_index=True)
    return both.sort_values(_SCORE, ascending=False, kind="stable").head(top)
