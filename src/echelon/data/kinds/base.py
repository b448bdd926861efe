"""The kinds of input that a row may hold, and what everything else asks of a kind.

A table (numbers, dates and categories side by side) is one kind; a column of texts is another, and
so is a column of images. Nothing outside a kind's own file knows how its cells are read, compared,
encoded or put into a batch. The names here can be read without torch.
"""

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor


@dataclass(frozen=True)
class KindRow:
    """A kind of input.

    Parameters
    ----------
    name : str
        As backbones and options are named by it; of all kinds but the table also the parameter
        that names its column.
    columns : tuple of str
        The kinds of columns that it is made of.
    backbone : str
        The one that reads it unless another is named.
    place : str, optional
        Its :class:`CellKind`, "module:object"; a table is arrays of numbers and codes instead.
    """

    name: str
    columns: tuple[str, ...]
    backbone: str
    place: str | None = None


TABLE = "table"

# In the order in which they are put together; what is hardest to fit comes last.
KINDS: Mapping[str, KindRow] = {
    row.name: row
    for row in (
        KindRow(TABLE, ("number", "date", "category"), "mlp"),
        KindRow("text", ("text",), "lstm", "echelon.data.kinds.text:TEXT"),
        KindRow("image", ("image",), "resnet", "echelon.data.kinds.image:IMAGE"),
    )
}
CELL_KINDS: tuple[str, ...] = tuple(row.name for row in KINDS.values() if row.place is not None)


class Reading(Protocol):
    """The encoded cells of many rows, put together for some of them at a time."""

    is_slow: ClassVar[bool]
    """Whether threads that read ahead are worth their while."""

    def __len__(self) -> int: ...

    @property
    def lengths(self) -> NDArray[np.int64] | None:
        """What a row costs in a batch, (n,), where rows differ in it."""
        ...

    def take(self, rows: NDArray[np.int64], seed: tuple[int, ...] | None = None) -> "Tensor":
        """What a network takes for some rows; with a seed, what is random in training."""
        ...

    def contents(self) -> Iterator[bytes]:
        """All cells, for a hash of them."""
        ...


class Encoding(Protocol):
    """How cells become what a network takes, decided on training rows and saved with a model."""

    @property
    def sizes(self) -> dict[str, Any]:
        """What a backbone must know of what it gets."""
        ...

    @property
    def free(self) -> dict[int, tuple[str, int]]:
        """Dimensions beyond the rows that vary from batch to batch: a name and the largest size."""
        ...

    def encode(self, cells: NDArray[Any]) -> Reading:
        """The encoded cells of rows, (n,)."""
        ...

    def example(self, rows: int) -> "Tensor":
        """What a network could get for so many rows."""
        ...

    def made_up(self, rows: int, generator: np.random.Generator) -> list[Any]:
        """Cells that nobody gave, to try a model out on."""
        ...

    def describe(self) -> dict[str, Any]:
        """What a saved model stores."""
        ...


class MeasuredKind(ABC):
    """A kind of column in a table whose cells become numbers."""

    name: ClassVar[str]
    typed_writing: ClassVar[str] = ""
    """The writing of columns that have a type of this kind; see `echelon.data.numerals`."""

    @abstractmethod
    def has_dtype(self, dtype: Any) -> bool:
        """Whether a type of columns says that all its cells are of this kind."""

    @abstractmethod
    def decide_writing(
        self, cells: NDArray[Any], counts: NDArray[np.int64], decimal: str | None
    ) -> tuple[str, Any]:
        """How cells (n,) are written if they are of this kind, and what they are when so read.

        `counts` says how often each cell occurs, `decimal` is the decimal sign of the table.
        """

    @abstractmethod
    def read_cells(self, cells: NDArray[Any], writing: str = "") -> Any:
        """The number of each cell, (n,): NaN where it is missing, None where it is of no such."""

    @abstractmethod
    def read_typed(self, column: "pd.Series[Any]") -> NDArray[np.float64]:
        """The numbers of a column that has a type of this kind, (n,)."""

    @abstractmethod
    def typed(self, values: NDArray[np.float64]) -> NDArray[Any]:
        """Numbers as a column that has a type of this kind, (n,)."""


class CellKind(ABC):
    """A kind whose cells are those of one column."""

    name: ClassVar[str]
    has_words: ClassVar[bool] = False
    """Whether a cell is made of words that can be left out one by one."""
    reading_options: ClassVar[tuple[str, ...]] = ()
    """Options of how cells are read; all others are of what they become, and saved with it."""

    @abstractmethod
    def read(self, column: "pd.Series[Any]") -> NDArray[Any]:
        """The cells of a column as objects, (n,)."""

    @abstractmethod
    def learn(
        self, cells: NDArray[Any], way: str, source: str, options: Mapping[str, Any]
    ) -> Encoding:
        """Decide on training rows how cells are encoded.

        Parameters
        ----------
        cells : array of objects, shape (n,)
        way : str
            As the backbone that reads them asks for it.
        source : str
            Where a pretrained backbone comes from.
        options : mapping
            Of the user.
        """

    @abstractmethod
    def rebuild(self, described: Mapping[str, Any]) -> Encoding:
        """An encoding from what its `describe` gave, which is not trusted."""

    def alone(self, cells: NDArray[Any]) -> NDArray[np.bool_]:
        """Which cells, (n,), say nothing when another row has the same; see `hold_out`."""
        return np.zeros(len(cells), dtype=bool)

    def find_broken(self, cells: NDArray[Any]) -> dict[int, str]:
        """Rows whose cells cannot be read, and why."""
        return {}

    def received(self, cell: Any) -> Any:
        """A cell that came in a request, which may name nothing on this machine; or an error."""
        if cell is None or isinstance(cell, str):
            return cell
        raise ValueError(f"a {self.name} must be a string or null; got {type(cell).__name__}")


def cell_kind(name: str) -> CellKind:
    """What knows the cells of a kind, by its name."""
    place = KINDS[name].place
    assert place is not None
    module, _, attribute = place.partition(":")
    kind: CellKind = getattr(import_module(module), attribute)
    return kind


class InputOptions(NamedTuple):
    """The options of inputs by kind: of how cells are read, and of what they become."""

    reading: dict[str, dict[str, Any]]
    encoding: dict[str, dict[str, Any]]


def input_options(inputs: Mapping[str, Mapping[str, Any]] | None) -> InputOptions:
    """What a user said of inputs, by kind; raise where that is no mapping by kind.

    Examples
    --------
    >>> input_options({"text": {"max_tokens": 64}}).encoding
    {'text': {'max_tokens': 64}}
    """
    kinds = ", ".join(CELL_KINDS)
    if inputs is not None and not isinstance(inputs, Mapping):
        raise ValueError(
            f"inputs must be a mapping from kind ({kinds}) to options, such as "
            f"{{'{CELL_KINDS[0]}': {{...}}}}; got {inputs!r}"
        )
    sorted_options = InputOptions({}, {})
    for name, options in (inputs or {}).items():
        if name not in CELL_KINDS:
            close = difflib.get_close_matches(str(name), CELL_KINDS, n=1)
            hint = f": did you mean {close[0]!r}?" if close else ""
            raise ValueError(f"inputs must be of the kinds {kinds}; got {name!r}{hint}")
        if not isinstance(options, Mapping):
            raise ValueError(
                f"the inputs of {name} must be a mapping from option to value; got {options!r}"
            )
        of_reading = cell_kind(name).reading_options
        sorted_options.reading[name] = {key: options[key] for key in options if key in of_reading}
        sorted_options.encoding[name] = {
            key: options[key] for key in options if key not in of_reading
        }
    return sorted_options


def cell_bits(cells: NDArray[Any]) -> NDArray[np.uint64]:
    """A hash of each text, path or image, (n,)."""
    import pandas as pd

    plain = [cell.tobytes() if hasattr(cell, "tobytes") else str(cell) for cell in cells]
    return pd.util.hash_array(np.array(plain, dtype=object))
