"""Results are read as they were written, and what is none is refused."""

import json

import pytest

from echelon.paper.results import Result, mean_and_deviation


def test_what_is_no_result_is_refused(tmp_path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"runs": []}))
    with pytest.raises(ValueError, match="not a result that `echelon reproduce` wrote"):
        Result.read(path)
    with pytest.raises(ValueError, match="is not a readable result"):
        Result.read(tmp_path / "none.json")


@pytest.mark.parametrize("number", [2, "1", True])
def test_a_result_of_another_format_is_named_as_such(tmp_path, number) -> None:
    path = tmp_path / "results.json"
    document = {"experiment": {"dataset": "fireman", "name": "fireman"}, "runs": []}
    path.write_text(json.dumps({"format": number, **document}))
    with pytest.raises(ValueError, match=r"result of fireman .*another echelon, in format .*anew"):
        Result.read(path)
    for numbered in ({}, {"format": 1}):  # the first ones had no number
        path.write_text(json.dumps({**numbered, **document}))
        assert Result.read(path).dataset == "fireman"


def test_means_have_a_deviation_where_there_are_several() -> None:
    assert mean_and_deviation({}, 3) == "-"
    assert mean_and_deviation({0: 0.5}, 2) == "0.50"
    assert mean_and_deviation({0: 0.4, 1: 0.6}, 3) == "0.500 ± 0.141"
