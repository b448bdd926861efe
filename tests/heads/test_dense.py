"""A head at every place: what a convolution computes, with a method's own parameters."""

import pytest
import torch
from torch import nn

import echelon
from echelon.heads import DenseHead, LinearHead


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 1},
        {"kernel_size": 3, "padding": 1},
        {"kernel_size": 3, "padding": "same", "dilation": 2},
        {"kernel_size": (3, 2), "stride": (2, 1), "padding": (0, 1)},
        {"kernel_size": 2, "padding": "valid"},
    ],
    ids=str,
)
def test_a_linear_head_is_the_convolution_it_stands_for(options: dict) -> None:
    convolution = nn.Conv2d(5, 4, **options)
    dense = DenseHead.like(convolution, lambda size: LinearHead(size, 4))
    with torch.no_grad():
        dense.head.weight.copy_(convolution.weight.reshape(4, -1))
        dense.head.bias.copy_(convolution.bias)
    features = torch.randn(2, 5, 9, 8)
    torch.testing.assert_close(dense(features), convolution(features))


@pytest.mark.parametrize("name", echelon.METHODS)
def test_every_place_has_the_logits_of_the_head(name: str) -> None:
    method = echelon.method(name, 4)
    dense = DenseHead(method.head(6))
    features = torch.randn(2, 6, 3, 5)
    logits = dense(features)
    assert logits.shape == (2, method.num_logits, 3, 5)
    torch.testing.assert_close(logits[1, :, 2, 4], dense.head(features[1, :, 2, 4]))


def test_sequences_and_volumes() -> None:
    for convolution, shape in ((nn.Conv1d(6, 3, 1), (7,)), (nn.Conv3d(6, 3, 1), (2, 3, 4))):
        dense = DenseHead.like(convolution, lambda size: LinearHead(size, 3))
        assert dense(torch.zeros(2, 6, *shape)).shape == (2, 3, *shape)


@pytest.mark.parametrize(
    ("convolution", "reason"),
    [
        (nn.Conv2d(4, 4, 1, groups=2), "groups=2"),
        (nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect"), "padding_mode='reflect'"),
        (nn.Conv1d(4, 4, 3), r"windows of \(3,\)"),
        (nn.Conv2d(4, 4, 2, padding="same"), "pads one side more"),
    ],
    ids=["groups", "mode", "one dimension", "even"],
)
def test_what_no_head_can_stand_for_is_said(convolution: nn.Module, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        DenseHead.like(convolution, lambda size: LinearHead(size, 4))
