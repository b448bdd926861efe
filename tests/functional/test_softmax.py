"""The losses on a softmax, beyond what all methods have in common."""

import pytest
import torch
from dlordinal.losses import CDWCELoss
from hypothesis import given
from hypothesis import strategies as st

from echelon.functional import ce_loss, cnnpor_loss, loss_parts, oll_loss, rps_loss, sord_loss
from echelon.methods import method


def test_cross_entropy_is_torchs() -> None:
    logits, ranks = torch.randn(20, 6), torch.randint(6, (20,))
    weight = torch.rand(6)
    expected = torch.nn.functional.cross_entropy(logits, ranks, weight=weight)
    torch.testing.assert_close(ce_loss(logits, ranks, class_weight=weight), expected)


def test_soft_cross_entropy_is_torchs() -> None:
    logits, soft = torch.randn(20, 6), torch.rand(20, 6).softmax(-1)
    expected = torch.nn.functional.cross_entropy(logits, soft)
    torch.testing.assert_close(ce_loss(logits, soft), expected)


def test_rps_prefers_a_near_miss() -> None:
    near, far = torch.tensor([[0.0, 9.0, 0.0, 0.0]]), torch.tensor([[0.0, 0.0, 0.0, 9.0]])
    rank = torch.tensor([0])
    assert rps_loss(near, rank) < rps_loss(far, rank)


def pair_loss(logits: list[list[float]], ranks: list[int], weights: list[float]) -> float:
    """CNNPOR's pairwise term as a plain double loop."""
    total = count = 0.0
    for i, lower in enumerate(ranks):
        for j, upper in enumerate(ranks):
            if upper == lower + 1:
                score_of_upper = logits[j][upper] - logits[j][lower]
                score_of_lower = logits[i][upper] - logits[i][lower]
                weight = weights[i] * weights[j]
                total += weight * max(0.0, 1 - (score_of_upper - score_of_lower))
                count += weight
    return total / count if count else 0.0


@given(
    seed=st.integers(0, 10_000),
    num_classes=st.integers(2, 6),
    pair_weight=st.sampled_from([0.0, 0.5, 3.0]),
)
def test_cnnpor_equals_a_double_loop(seed: int, num_classes: int, pair_weight: float) -> None:
    torch.manual_seed(seed)
    logits, ranks = torch.randn(11, num_classes), torch.randint(num_classes, (11,))
    weights = torch.rand(11)
    found = cnnpor_loss(logits, ranks, pair_weight=pair_weight, sample_weight=weights)
    pairs = pair_loss(logits.tolist(), ranks.tolist(), weights.tolist())
    expected = ce_loss(logits, ranks, sample_weight=weights) + pair_weight * pairs
    torch.testing.assert_close(found, expected)


def test_cnnpor_without_neighbours_is_cross_entropy() -> None:
    logits, ranks = torch.randn(8, 5), torch.tensor([0, 2] * 4)
    torch.testing.assert_close(cnnpor_loss(logits, ranks), ce_loss(logits, ranks))


def test_cnnpor_refuses_a_loss_per_row() -> None:
    with pytest.raises(ValueError, match=r"couples the rows.*no loss of its own"):
        cnnpor_loss(torch.zeros(4, 3), torch.zeros(4, dtype=torch.long), reduction="none")


def test_cnnpor_refuses_extra_dimensions() -> None:
    with pytest.raises(ValueError, match=r"couples the rows.*must be \(N, K\); got \(2, 4, 3\)"):
        cnnpor_loss(torch.zeros(2, 4, 3), torch.zeros(2, 4, dtype=torch.long))


def test_cnnpor_refuses_soft_labels() -> None:
    with pytest.raises(ValueError, match="soft labels have no meaning"):
        cnnpor_loss(torch.zeros(2, 4), torch.full((2, 4), 0.25))


def test_cnnpor_gives_two_ratios() -> None:
    parts = loss_parts(cnnpor_loss, torch.randn(6, 3), torch.tensor([0, 0, 1, 1, 1, 2]))
    assert parts.count.tolist() == [6.0, 2 * 3 + 3 * 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"distance": "cubic"},
            "distance must be one of 'absolute', 'squared', 'squared_log'; got 'cubic'",
        ),
        ({"temperature": 0.0}, "temperature must be a number of at least 1e-06; got 0.0"),
        ({"temperature": float("nan")}, "temperature must be a number.*got nan"),
    ],
)
def test_sord_refuses_what_it_cannot_do(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sord_loss(torch.zeros(2, 3), torch.tensor([0, 1]), **options)
    with pytest.raises(ValueError, match=message):
        method("sord", 3, **options)


def test_cnnpor_refuses_a_negative_pair_weight() -> None:
    with pytest.raises(ValueError, match="pair_weight must be a number of at least 0; got -1"):
        method("cnnpor", 3, pair_weight=-1)


def test_ordinal_log_loss_equals_that_of_dlordinal() -> None:
    """Its class-distance weighted cross-entropy is the same formula, the margin included."""
    logits, ranks = torch.randn(40, 6, dtype=torch.float64), torch.randint(6, (40,))
    for power in (0.5, 1.5, 5.0):
        for margin in (0.0, 0.05):
            peer = CDWCELoss(6, alpha=power, margin=margin)(logits, ranks)
            found = oll_loss(logits, ranks, power=power, margin=margin)
            torch.testing.assert_close(found, peer, rtol=1e-6, atol=1e-6)


def test_ordinal_log_loss_leaves_the_true_rank_out_also_at_power_0() -> None:
    logits, ranks = torch.zeros(1, 4), torch.tensor([2])
    expected = -3 * torch.tensor(0.75).log()
    for labels in (ranks, torch.nn.functional.one_hot(ranks, 4).float()):
        torch.testing.assert_close(oll_loss(logits, labels, power=0.0), expected)


def test_a_sure_and_wrong_prediction_still_has_a_gradient() -> None:
    logits = torch.tensor([[200.0, 0.0, 0.0]], requires_grad=True)
    oll_loss(logits, torch.tensor([2]), power=1.0).backward()
    assert logits.grad[0, 0].item() == pytest.approx(2.0, rel=1e-3)


def test_a_mixture_goes_from_one_loss_to_the_other() -> None:
    logits, ranks = torch.randn(9, 4), torch.arange(9) % 4
    torch.testing.assert_close(oll_loss(logits, ranks, ce_share=1.0), ce_loss(logits, ranks))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"power": -1.0}, "power must be a number of at least 0; got -1"),
        ({"margin": 1.0}, "margin must be a number of at least 0 and below 1; got 1"),
        ({"ce_share": 1.5}, "ce_share must be a number of at least 0 and at most 1; got 1.5"),
    ],
)
def test_ordinal_log_loss_refuses_what_it_cannot_do(
    options: dict[str, float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        method("oll", 3, **options)
