"""Limits: what is at the limit passes, what is beyond it is refused with both numbers."""

import pytest

from echelon.serving.refusal import Limits, Refusal


def test_a_body_at_the_limit_passes_and_one_byte_more_does_not() -> None:
    limits = Limits(body=100, rows=3, explained=2)
    limits.require_body(100)
    limits.require_rows(3)
    for ask, status in (
        (lambda: limits.require_body(101), 413),
        (lambda: limits.require_rows(4), 413),
        (lambda: limits.require_rows(3, explained=True), 413),
        (lambda: limits.require_rows(0), 422),
    ):
        with pytest.raises(Refusal) as refused:
            ask()
        assert refused.value.status == status


@pytest.mark.parametrize("wrong", [{"body": 0}, {"waiting": 0}, {"seconds": 0.0}, {"seconds": 1e9}])
def test_limits_that_let_nothing_pass_are_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match="the limit of"):
        Limits(**wrong)
