"""Defects of other libraries, as tests of ours; and equality where the others are right."""

import pytest
import torch
from coral_pytorch.losses import coral_loss as peer_coral_loss
from coral_pytorch.losses import corn_loss as peer_corn_loss
from hypothesis import given
from hypothesis import strategies as st

import echelon
from echelon.functional import coral_loss, corn_loss, sord_loss


@given(
    seed=st.integers(0, 2**31),
    num_classes=st.integers(2, 12),
    scale=st.sampled_from([0.1, 1.0, 10.0]),
)
def test_corn_equals_coral_pytorch(seed: int, num_classes: int, scale: float) -> None:
    torch.manual_seed(seed)
    logits = (torch.randn(16, num_classes - 1) * scale).requires_grad_()
    ranks = torch.randint(num_classes, (16,))
    found, expected = corn_loss(logits, ranks), peer_corn_loss(logits, ranks, num_classes)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    gradients = [torch.autograd.grad(loss, logits)[0] for loss in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)


def test_coral_equals_coral_pytorch_with_importance_weights() -> None:
    logits, ranks = torch.randn(20, 6), torch.randint(7, (20,))
    levels = (ranks.unsqueeze(1) > torch.arange(6)).float()
    weight = torch.rand(6)
    expected = peer_coral_loss(logits, levels, importance_weights=weight)
    found = coral_loss(logits, ranks, task_weight=weight, normaliser="rows")
    torch.testing.assert_close(found, expected)


def test_a_label_too_high_is_not_accepted_in_silence() -> None:
    logits, ranks = torch.randn(3, 4), torch.tensor([0, 4, 9])
    peer_corn_loss(logits, ranks, 5)  # takes it
    with pytest.raises(ValueError, match=r"rank 9 is outside 0\.\.4"):
        corn_loss(logits, ranks)


def test_a_batch_of_only_negative_labels_does_not_divide_by_zero() -> None:
    logits, ranks = torch.randn(3, 4), torch.tensor([-1, -1, -1])
    with pytest.raises(ZeroDivisionError):
        peer_corn_loss(logits, ranks, 5)
    with pytest.raises(ValueError, match=r"rank -1 is outside.*pass ignore_index=-1"):
        corn_loss(logits, ranks)
    assert corn_loss(logits, ranks, ignore_index=-1) == 0


def test_small_losses_are_not_rounded_to_zero() -> None:
    """A correct and sure prediction costs exp(-20), which `log(1 - p)` cannot see."""
    logits, ranks = torch.tensor([[-20.0]]), torch.tensor([0])
    assert peer_corn_loss(logits, ranks, 2) != pytest.approx(2.06e-9, rel=0.1)
    assert corn_loss(logits, ranks).item() == pytest.approx(2.0611537e-09, rel=1e-5)


def test_targets_follow_the_logits_to_their_device() -> None:
    """dlordinal's SORD and coral-pytorch's levels stay on the CPU."""
    logits = torch.zeros(3, 5, device="meta")
    ranks = torch.zeros(3, dtype=torch.long, device="meta")
    for name in echelon.METHODS:
        made = echelon.method(name, 5)
        curve = made.curve(logits[:, : made.num_logits])
        assert curve.log_probabilities.device.type == "meta"
        # mixing devices raises, so that a loss which gets through has all its targets on one
        assert made.loss(logits[:, : made.num_logits], ranks).device.type == "meta"
    with pytest.raises(ValueError, match="logits are on meta and ranks on cpu; move the ranks"):
        corn_loss(logits[:, :4], ranks.new_zeros(3, device="cpu"))


def test_ignore_index_is_alive() -> None:
    logits, ranks = torch.randn(4, 5), torch.tensor([0, -100, 4, -100])
    expected = sord_loss(logits[[0, 2]], ranks[[0, 2]])
    torch.testing.assert_close(sord_loss(logits, ranks, ignore_index=-100), expected)


def test_half_precision_does_not_overflow() -> None:
    """dlordinal's CDW loss is NaN in float16 from a logit of 12 on."""
    for name in echelon.METHODS:
        made = echelon.method(name, 5)
        logits = torch.full((4, made.num_logits), 12.0, dtype=torch.float16)
        assert torch.isfinite(made.loss(logits, torch.tensor([0, 1, 2, 4])))


def test_saturation_leaves_a_gradient() -> None:
    """spacecutter's gradient is zero once a cutpoint is far away."""
    for link in ("logit", "probit"):
        made = echelon.method("clm", 4, link=link)
        logits = torch.tensor([[-200.0, 0.0, 0.0]], requires_grad=True)  # sure of the top rank
        made.loss(logits, torch.tensor([0])).backward()
        assert logits.grad[0, 0] < -0.9


def test_probabilities_are_probabilities() -> None:
    """Not one-hot rows (dlordinal's CORN), never negative (Frank-Hall without repair)."""
    curve = echelon.method("corn", 3).curve(torch.tensor([[0.4, -0.3]]))
    first, second = 1 / (1 + torch.tensor([-0.4, 0.3]).exp())
    expected = torch.stack([1 - first, first * (1 - second), first * second])
    torch.testing.assert_close(curve.probabilities[0], expected)
    crossed = echelon.method("ornn", 4).curve(torch.tensor([[-2.0, 3.0, 1.0]]))
    assert (crossed.probabilities >= 0).all()


def test_a_checkpoint_of_coral_pytorch_is_loaded_into_our_head() -> None:
    """The network is the same, so its logits are, to the bit."""
    from coral_pytorch.layers import CoralLayer

    theirs = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), CoralLayer(8, 5))
    ours = torch.nn.Sequential(
        torch.nn.Linear(6, 8), torch.nn.ReLU(), echelon.heads.SharedWeightHead(8, 5)
    )
    checkpoint = theirs.state_dict()
    names = list(checkpoint)
    assert ours.load_state_dict(checkpoint).missing_keys == []
    assert list(checkpoint) == names  # which stays as it was
    inputs = torch.randn(4, 6)
    assert torch.equal(ours(inputs), theirs(inputs))
    converted = echelon.convert(
        torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 5)),
        5,
        "coral",
    )
    converted.network.load_state_dict(checkpoint)
    assert torch.equal(converted(inputs), theirs(inputs))
    again = echelon.heads.SharedWeightHead(8, 5)
    again.load_state_dict(ours[2].state_dict())  # our own names are taken as ever
    assert torch.equal(again.bias, ours[2].bias)


def test_a_checkpoint_of_corn_by_coral_pytorch_is_that_of_a_linear_layer() -> None:
    theirs = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
    ours = echelon.convert(
        torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 9)), 5
    )
    ours.network.load_state_dict(theirs.state_dict())
    inputs = torch.randn(4, 6)
    assert torch.equal(ours(inputs), theirs(inputs))
