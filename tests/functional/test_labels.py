"""What every loss reads of labels: one form for hard and soft ones, and sums before a mean."""

import pytest
import torch

from echelon.functional import _labels
from echelon.functional import ce_loss as loss
from echelon.functional._labels import LossParts, loss_parts

LOGITS = torch.tensor([[0.0, 1.0, -1.0], [2.0, 0.0, 0.5], [float("nan")] * 3])
PLAIN = {"sample_weight": None, "class_weight": None, "ignore_index": None, "reduction": "mean"}


def read(ranks: torch.Tensor, **options):
    return _labels.read(LOGITS, ranks, 3, **{**PLAIN, **options})


def test_rows_that_do_not_count_lose_their_logits_too() -> None:
    """Their NaN must not reach the loss, not even times 0."""
    for ranks, options in (
        (torch.tensor([0, 2, -1]), {"ignore_index": -1}),
        (torch.tensor([0, 2, 1]), {"sample_weight": [1.0, 1.0, 0.0]}),
        (torch.tensor([0, 2, 1]), {"class_weight": [1.0, 0.0, 1.0]}),
    ):
        logits, labels = read(ranks, **options)
        assert torch.isfinite(logits).all()
        assert labels.weight.tolist() == [1.0, 1.0, 0.0]
        torch.testing.assert_close(logits[:2], LOGITS[:2])


def test_weights_of_classes_and_rows_are_multiplied() -> None:
    weights = {"sample_weight": [2.0, 3.0, 0.0], "class_weight": [1.0, 10.0, 100.0]}
    _, labels = read(torch.tensor([1, 2, 0]), **weights)
    assert labels.weight.tolist() == [20.0, 300.0, 0.0]
    assert labels.mass is None


def test_the_mean_of_added_parts_is_that_of_all_rows() -> None:
    logits, ranks = torch.randn(7, 4), torch.tensor([0, 1, 2, 3, 3, 2, 1])
    weight = torch.arange(7.0)
    one, two = (
        loss_parts(loss, logits[rows], ranks[rows], sample_weight=weight[rows])
        for rows in (slice(0, 3), slice(3, 7))
    )
    both = LossParts(one.total + two.total, one.count + two.count)
    torch.testing.assert_close(both.mean(), loss(logits, ranks, sample_weight=weight))


@pytest.mark.parametrize(
    ("ranks", "options", "message"),
    [
        (torch.tensor([0, 1, 3]), {}, r"rank 3 is outside 0\.\.2.*pass ignore_index=3"),
        (torch.tensor([0, 1]), {}, r"shape of the logits without the last dimension, \(3,\)"),
        (torch.tensor([0.0, 1.0, 2.0]), {}, r"convert whole numbers with ranks\.long\(\)"),
        (torch.full((3, 3), 0.4), {}, "sum to 1 for every row"),
        (torch.full((3, 3), 1 / 3), {"ignore_index": -1}, "sample_weight of 0"),
        (torch.tensor([0, 1, 2]), {"sample_weight": [1.0, -2.0, 1.0]}, "not negative; got -2"),
        (torch.tensor([0, 1, 2]), {"reduction": "median"}, "reduction must be one of 'mean'"),
    ],
)
def test_what_is_refused_is_named(ranks: torch.Tensor, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(ranks, **options)
