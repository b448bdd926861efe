"""Colours of the page: each method has one, everywhere.

They can be told apart by people who see red and green alike, on light and on dark ground, and none
of them is that of the truth.
"""

from collections.abc import Sequence

TRUTH = "#d97a1f"
GREY = "#8a8f98"
FLOOR = "#5a6270"
COLOURS = (
    "#3b82d6", "#1b9e8a", "#9a6ad6", "#d0568f", "#8a9a1f", "#4bb4d9", "#a5673f", "#c94f4f",
)  # fmt: skip
DASHES = ((1, 0), (6, 3), (2, 2))  # once the colours have run out


def colours(methods: Sequence[str]) -> dict[str, str]:
    """The colour of each method, the first of them blue.

    Examples
    --------
    >>> colours(["corn", "ce"])
    {'corn': '#3b82d6', 'ce': '#1b9e8a'}
    """
    return {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(methods)}


def dashes(methods: Sequence[str]) -> dict[str, tuple[int, int]]:
    """The dashes of each method's lines, which tell those of one colour apart."""
    return {name: DASHES[place // len(COLOURS) % len(DASHES)] for place, name in enumerate(methods)}
