"""What ``--stream`` reads: rows of a source that a fit takes as it takes those of a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from echelon.cli.reading import DataDescription, LabelledRows

_HELD_OUT = 0xCA11  # the salt of what a command holds out, beside the seed


def open_rows(described: DataDescription) -> "StreamedRows":
    """The rows of a description, of which a look at the columns is all that is held."""
    from echelon.data.formats import Reading
    from echelon.data.source import Source
    from echelon.data.stream import open_stream

    media = [f"--{kind} {name}" for kind, name in described.columns_by_kind.items() if name]
    if media:
        raise ValueError(
            f"--stream reads numbers, dates and categories, and {media[0]} is given; leave out one "
            f"of them"
        )
    assert described.target is not None
    source = Source(
        tuple(described.paths),
        described.target,
        tuple(described.classes) or None,
        tuple(described.drop),
        described.weight,
        described.group,
        Reading(described.sep, described.decimal, described.encoding, described.sheet),
        tuple(described.missing_codes),
        described.missing_target,
        described.keep_ids,
    )
    return StreamedRows(open_stream(source, check_labels=described.require_order))


@dataclass(frozen=True)
class StreamedRows:
    """Rows of a source, with what :class:`echelon.cli.reading.LabelledRows` has of rows in memory.

    Parameters
    ----------
    stream : echelon.data.stream.RowStream
    """

    stream: Any
    skipped: int = 0

    def __len__(self) -> int:
        rows: int = sum(part.rows for part in self.stream.slices)
        return rows - self.unlabelled

    @property
    def unlabelled(self) -> int:
        """How many rows have no label."""
        count: int = self.stream.unlabelled
        return count

    @property
    def classes(self) -> list[Any]:
        """The labels that there are, the lowest first."""
        classes: list[Any] = self.stream.labels.classes.tolist()
        return classes

    @property
    def left_out(self) -> dict[str, str]:
        """The columns that name rows instead of describing them, and why."""
        return dict(self.stream.remarks.left_out)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What ``fit`` takes, which has everything in it."""
        return (self.stream,)

    def select(self, share: Any) -> "StreamedRows":
        """The rows of a share."""
        return StreamedRows(self.stream.subset(*share), self.skipped)

    def held_out(
        self, shares: Sequence[float], seed: int, columns_by_kind: Mapping[str, str | None]
    ) -> list[Any]:
        """Each share, at most 100,000 rows, and, last, the rest; groups and twins stay together."""
        from echelon.data.survey import MOST_HELD

        if any(not 0 < share < 1 for share in shares) or sum(shares) >= 1:
            raise ValueError(
                f"held-out shares must lie between 0 and 1 and leave rows; got {list(shares)}"
            )
        salt, low, ranges = _HELD_OUT + seed, 0.0, []
        for share in shares:
            high = low + min(share, MOST_HELD / max(1, len(self)))
            ranges.append((salt, low, high))
            low = high
        return [*ranges, (salt, low, 1.0)]

    @cached_property
    def in_memory(self) -> LabelledRows:
        """These rows as a table."""
        frame, ranks, weights = self.stream.collect()
        labels = self.stream.labels.from_ranks(ranks)
        return LabelledRows(frame, labels, self.classes, weights, None, 0)
