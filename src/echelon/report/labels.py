"""Labels of axes in lines: every class is named, and no name is cut while there is room."""

import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

_LINE = 14  # characters
_MOST_LINES = 3
_LETTER = 6.5  # pixels, of the small font of an axis
IN_LINES = "split(datum.label, '\\n')"  # what a chart does with a label


class AxisLabels(NamedTuple):
    """Names in lines, with an end of line between them; no two of them are the same."""

    names: list[str]

    @classmethod
    def of(cls, names: Sequence[str], line: int = _LINE) -> "AxisLabels":
        r"""Names in lines of some length, of which there are three at most.

        Examples
        --------
        >>> AxisLabels.of(["Neither agree nor disagree", "Agree"]).names
        ['Neither agree\nnor disagree', 'Agree']
        """
        made = [_in_lines(name, line) for name in names]
        if len(set(made)) < len(made):  # cut, or with other spaces
            made = [f"{number}: {name}" for number, name in enumerate(made)]
        return cls(made)

    @property
    def longest(self) -> int:
        """The characters of the longest line."""
        return max((len(line) for name in self.names for line in name.split("\n")), default=0)

    @property
    def lines(self) -> int:
        """The lines of the name that has most."""
        return max((name.count("\n") + 1 for name in self.names), default=1)

    def fits_across(self, width: float) -> bool:
        """Whether the names can stand upright beside each other on an axis of so many pixels."""
        return self.room <= width

    @property
    def room(self) -> float:
        """The pixels that the names need beside each other."""
        return len(self.names) * (self.longest * _LETTER + 8)

    def across(self, axis: Any, **options: Any) -> Any:
        """The axis below a chart: upright where that fits an image, and on its side otherwise."""
        angle = 0 if self.fits_across(400) else -90
        return axis(
            labelExpr=IN_LINES, labelAngle=angle, labelOverlap=False, labelLimit=0,
            labelFontSize=11 if len(self.names) <= 20 else 9, **options,
        )  # fmt: skip

    def down(self, axis: Any, **options: Any) -> Any:
        """The axis beside a chart."""
        return axis(
            labelExpr=IN_LINES, labelOverlap=False, labelLimit=0,
            labelFontSize=11 if len(self.names) <= 20 else 9, **options,
        )  # fmt: skip


def _in_lines(name: str, line: int) -> str:
    lines = textwrap.wrap(name, line, break_on_hyphens=True) or [name]
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], f"{lines[_MOST_LINES - 1][: line - 1]}…"]
    return "\n".join(lines)
