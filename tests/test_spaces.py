"""Spaces as people write them, and what cannot be read."""

import json

import pytest

from echelon.spaces import Between, OneOf, read_space, space_document


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "must name something to search"),
        ({"leaves": 7}, "space of leaves must be a list of values, or have low and high"),
        ({"leaves": []}, "at least one value is needed"),
        ({"leaves": [7, 7]}, "the values must differ"),
        ({"leaves": {"low": 3}}, "must be a list of values, or have low and high"),
        ({"leaves": {"low": 3, "high": 2}}, "low must be below high; got 3 and 2"),
        ({"l2": {"low": 0, "high": 2, "log": True}}, "low must be above 0 where log is true"),
        ({"l2": {"low": 0.5, "high": 2, "whole": True}}, "the ends must be whole"),
        ({"l2": {"low": "a", "high": 2}}, "the ends must be finite numbers; got 'a'"),
        ({"l2": {"low": 1, "high": 2, "log": "yes"}}, "log and whole must be true or false"),
        ({"l2": {"low": 1, "high": 2, "step": 1}}, "must be a list of values"),
    ],
)
def test_what_cannot_be_read_says_what_is_needed(given, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_space(given)


def test_tables_inside_tables_are_names_with_dots() -> None:
    """As TOML reads ``settings.l2 = {low = 1, high = 2}``."""
    given = {"settings": {"l2": {"low": 1, "high": 2}, "deep": {"rows": [1, 2]}}}
    expected = {"settings.l2": Between(1, 2), "settings.deep.rows": OneOf((1, 2))}
    assert read_space(given) == expected


def test_a_space_that_was_written_down_is_read_back() -> None:
    space = {"a": Between(1, 9, log=True, whole=True), "b": OneOf(("x", None, [1, 2]))}
    assert read_space(json.loads(json.dumps(space_document(space)))) == space


def test_numbers_are_short_and_stay_between_the_ends() -> None:
    assert Between(0.001, 1, log=True).readable(0.0123456) == 0.01235
    assert Between(0.1, 0.123456).readable(0.123456) == 0.123456
    assert Between(1, 9, whole=True).readable(3) == 3
