"""Colours: one for each method, never that of the truth."""

from echelon.report.palette import COLOURS, TRUTH, colours, dashes


def test_methods_of_one_colour_differ_by_their_dashes() -> None:
    names = [f"method {i}" for i in range(2 * len(COLOURS))]
    looks = {(colours(names)[name], dashes(names)[name]) for name in names}
    assert len(looks) == len(names)
    assert TRUTH not in COLOURS
