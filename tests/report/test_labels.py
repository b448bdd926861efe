"""Labels of axes: in lines, all of them different."""

from echelon.report.labels import AxisLabels


def test_long_names_stand_in_lines_and_very_long_ones_end_in_dots() -> None:
    labels = AxisLabels.of(["Neither agree nor disagree", "x" * 100])
    assert labels.names[0] == "Neither agree\nnor disagree"
    assert labels.names[1].endswith("…")
    assert (labels.lines, labels.longest) == (3, 14)


def test_names_that_would_look_alike_are_numbered() -> None:
    assert AxisLabels.of(["y" * 99, "y" * 98]).names[0].startswith("0: ")
    assert len(set(AxisLabels.of(["a b", "a  b"]).names)) == 2


def test_names_stand_upright_where_there_is_room() -> None:
    assert AxisLabels.of(["1", "2"]).fits_across(200)
    assert not AxisLabels.of(["Strongly agree"] * 1 + ["Disagree"] * 1).fits_across(100)
