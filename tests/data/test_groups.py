"""Groups out of the names of files."""

import pytest

from echelon.data.groups import groups_of_names

KNEES = r"^(\d+)[LR]"


def test_the_part_in_brackets_is_the_group_and_folders_do_not_count() -> None:
    names = ["train/0/9003175L.jpg", "test/12/9003175R.jpg", "9003316L.png"]
    assert groups_of_names(names, KNEES).tolist() == ["9003175", "9003175", "9003316"]
    assert groups_of_names(["77/a1.jpg"], r"\d+").tolist() == ["1"]  # without brackets, the match


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", r"must be a regular expression; '\(' is none"),
        ("(a)(b)", r"one part in brackets, the group; .* has 2: write \(\?:\.\.\)"),
        (r"^(\d+)X", "must match the name of every file; .* does not match '9003175L.jpg'"),
        ("(Z)?9", "does not match"),
    ],
)
def test_patterns_that_are_refused(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        groups_of_names(["0/9003175L.jpg"], pattern)
