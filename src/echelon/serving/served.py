"""A model that is served: predictions of the rows of several requests in one pass, and its file.

Invariant: a pass is made by one model from its first row to its last. A file that was replaced is
read, checked and tried beside the model that serves; only a model that is whole takes its place.
"""

import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon.curve import RankCurve
from echelon.data.columns import Remarks, gathered_remarks
from echelon.data.outside import outside_columns
from echelon.data.schema import RawTable
from echelon.models.document import fingerprint
from echelon.models.loading import load
from echelon.serving.bodies import ReceivedRows
from echelon.serving.refusal import WRONG_ROWS, Refusal
from echelon.terminal import one_line


@dataclass(frozen=True)
class Predictions:
    """What is said of n rows.

    Attributes
    ----------
    labels : array, shape (n,)
    probabilities : array, shape (n, K)
    ends : tuple of arrays, shape (n,) each, or None
        The lowest and the highest label of the intervals, of a model that has some.
    outside : array of str, shape (n,)
        The columns in which a row lies outside what the model was trained on, "; " between them.
    """

    labels: NDArray[Any]
    probabilities: NDArray[np.float64]
    ends: tuple[NDArray[Any], NDArray[Any]] | None
    outside: NDArray[Any]

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, part: slice) -> "Predictions":
        """Those of some of the rows."""
        ends = None if self.ends is None else (self.ends[0][part], self.ends[1][part])
        return Predictions(self.labels[part], self.probabilities[part], ends, self.outside[part])


class ServedModel:
    """A fitted model with what the server says of it.

    Parameters
    ----------
    fitted : model
    coverage : float
        Of the intervals, where the model has them.
    """

    def __init__(self, fitted: Any, coverage: float = 0.9) -> None:
        self.fitted = fitted
        self.coverage = coverage
        self.fingerprint = fingerprint(fitted)
        self.loaded = time.time()
        self.classes: list[Any] = fitted.classes_.tolist()

    @property
    def schema(self) -> Any:
        """What the columns of the model are."""
        return self.fitted.schema_

    def predict(self, rows: ReceivedRows) -> Predictions:
        """The predictions of the rows of a body; refused where a cell is not what its column is."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say may hold cells of the request
            table = self.read(rows)
            curve = self.curve(table)
            if not bool(curve.is_defined.all()):
                self._refuse_undefined(curve, rows)
            probabilities = curve.probabilities.double().cpu().numpy()
            ends = None
            if self.fitted.conformal_ is not None:
                ranks = self.fitted.interval_ranks(probabilities, self.coverage)
                lowest, highest = (self.fitted.labels_.from_ranks(ranks[:, i]) for i in (0, 1))
                ends = (lowest, highest)
            named = {column.name: rows.column(column.name) for column in self.schema.categorical}
            outside = outside_columns(self.schema, self.fitted.columns_, named, table)
            return Predictions(self.fitted.label(curve), probabilities, ends, outside)

    def _refuse_undefined(self, curve: RankCurve, rows: ReceivedRows) -> None:
        try:
            self.fitted.refuse_undefined(curve, rows.frame(), first_row=1)
        except ValueError as error:
            raise Refusal(WRONG_ROWS, str(error).partition(". Leave")[0]) from None

    def read(self, rows: ReceivedRows) -> RawTable:
        """The rows as the model reads them; every cell must be what its column is, or missing."""
        with gathered_remarks() as remarks:
            try:
                table: RawTable = self.schema.read_columns(rows.cells)
            except Exception as error:  # it sees nothing but the cells of the request
                raise Refusal(WRONG_ROWS, one_line(error)[:400]) from None
        if remarks.unread:
            raise Refusal(WRONG_ROWS, _odd_cells(remarks))
        return table

    def curve(self, table: RawTable) -> RankCurve:
        """The curves of rows that were read, calibrated as the model is."""
        curve = RankCurve.concatenate(list(self.fitted.curves_of_rows(table)))
        calibration = self.fitted.calibration_
        return curve if calibration is None else curve.calibrated(calibration)

    def predict_each(self, bodies: Sequence[ReceivedRows]) -> list[Predictions | Exception]:
        """The predictions of several bodies in one pass, each as if it had come alone.

        Where the pass fails, every body is asked about alone, so that one that is wrong has no
        part in what the others get.
        """
        try:
            whole = self.predict(ReceivedRows.together(bodies))
        except Exception as error:
            if len(bodies) == 1:
                return [error]
            return [self.predict_each([body])[0] for body in bodies]
        ends = np.cumsum([len(body) for body in bodies])
        return [
            whole.rows(slice(end - len(body), end)) for body, end in zip(bodies, ends, strict=True)
        ]

    def warm(self) -> None:
        """Predict a row in which everything is missing, so that the first request need not wait."""
        empty = {c.name: np.array([None], dtype=object) for c in self.schema.columns}
        self.predict_each([ReceivedRows(empty)])


def _odd_cells(remarks: Remarks) -> str:
    (name, kind), remark = next(iter(remarks.unread.items()))
    return (
        f"column {name!r} must hold {kind}s, or nothing where they are missing; got "
        f"{', '.join(remark.examples):.200}"
    )


class ModelFile:
    """The file of the model that is served, and the model that was read from it last.

    Parameters
    ----------
    path : Path
    coverage : float
    say : callable
        Called with a sentence when the file was replaced.
    """

    def __init__(self, path: Path, coverage: float, say: Callable[[str], None]) -> None:
        self.path, self._coverage, self._say = path, coverage, say
        self._seen = self._signature()
        self.reloads = self.failures = 0
        self.current = self._read()

    def look(self) -> bool:
        """Read the file anew if it is another one by now; whether a new model serves."""
        signature = self._signature()
        if signature is None or signature == self._seen:
            return False
        self._seen = signature
        try:
            model = self._read()
        except Exception as error:
            self.failures += 1
            self._say(
                f"{self.path} was replaced by what is no whole model, and the one before goes on "
                f"serving: {one_line(error)}"
            )
            return False
        self.current = model
        self.reloads += 1
        self._say(f"{self.path} was replaced: model {model.fingerprint[:12]} serves from now on")
        return True

    def _read(self) -> ServedModel:
        model = ServedModel(load(self.path), self._coverage)
        model.warm()
        return model

    def _signature(self) -> tuple[int, ...] | None:
        """What tells one file from another without reading it; None while there is none."""
        try:
            state = os.stat(self.path)
        except OSError:
            return None
        return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns
