"""The losses on binary tasks, beyond what all methods have in common."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import Tensor
from torch.nn.functional import softplus

from echelon.functional import (
    coral_loss,
    corn_log_probabilities,
    corn_loss,
    corn_without_subsets_loss,
    loss_parts,
    margin_loss,
    ornn_loss,
    sorted_log_probabilities,
)
from echelon.methods import method

finite = st.floats(-1e4, 1e4, width=32)


@st.composite
def logits_and_ranks(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    rows, tasks = draw(st.integers(1, 6)), draw(st.integers(1, 7))
    logits = torch.from_numpy(draw(arrays("float32", (rows, tasks), elements=finite)))
    ranks = draw(st.lists(st.integers(0, tasks), min_size=rows, max_size=rows))
    return logits, torch.tensor(ranks)


def paper_formula(logits: list[list[float]], ranks: list[int]) -> float:
    """Eq. 4 of the CORN paper as a plain double loop over tasks j and subsets S_j."""
    total, pairs = 0.0, 0
    for task in range(len(logits[0])):
        subset = [i for i, rank in enumerate(ranks) if rank >= task]
        for i in subset:
            z = logits[i][task] if ranks[i] > task else -logits[i][task]
            total += math.log1p(math.exp(-z)) if z > -700 else -z
        pairs += len(subset)
    return total / pairs


@given(logits_and_ranks())
def test_corn_equals_the_formula_of_the_paper(batch: tuple[Tensor, Tensor]) -> None:
    logits, ranks = batch
    expected = paper_formula(logits.double().tolist(), ranks.tolist())
    assert corn_loss(logits, ranks).item() == pytest.approx(expected, rel=1e-5, abs=1e-30)


@given(logits_and_ranks())
def test_corn_sums_to_the_likelihood_of_its_curve(batch: tuple[Tensor, Tensor]) -> None:
    logits, ranks = batch
    found = corn_loss(logits, ranks, reduction="none")
    expected = -corn_log_probabilities(logits).gather(1, ranks.unsqueeze(1)).squeeze(1)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)


def test_corn_by_hand() -> None:
    # Three ranks. Row 0 (rank 0) is in task 0 only; rows 1 and 2 (ranks 1, 2) are in both.
    logits = torch.tensor([[0.0, 9.0], [math.log(3), 0.0], [math.log(3), math.log(7)]])
    ranks = torch.tensor([0, 1, 2])
    # -log of 1/2; of 3/4 and 1/2; of 3/4 and 7/8
    rows = [math.log(2), math.log(4 / 3) + math.log(2), math.log(4 / 3) + math.log(8 / 7)]
    torch.testing.assert_close(corn_loss(logits, ranks, reduction="none"), torch.tensor(rows))
    assert corn_loss(logits, ranks).item() == pytest.approx(sum(rows) / 5)
    assert corn_loss(logits, ranks, normaliser="rows").item() == pytest.approx(sum(rows) / 3)
    first = (math.log(2) + 2 * math.log(4 / 3)) / 3
    second = (math.log(2) + math.log(8 / 7)) / 2
    per_task = corn_loss(logits, ranks, normaliser="per_task").item()
    assert per_task == pytest.approx((first + second) / 2)


def test_a_task_without_rows_counts_in_the_mean_of_tasks_as_zero() -> None:
    logits, ranks = torch.zeros(4, 3), torch.tensor([0, 0, 1, 0])  # nobody reaches task 2
    found = corn_loss(logits, ranks, normaliser="per_task")
    assert found.item() == pytest.approx(2 * math.log(2) / 3)


@given(logits_and_ranks())
def test_inactive_tasks_get_no_gradient(batch: tuple[Tensor, Tensor]) -> None:
    logits, ranks = batch[0].requires_grad_(), batch[1]
    corn_loss(logits, ranks, reduction="sum").backward()
    inactive = ranks.unsqueeze(1) < torch.arange(logits.shape[1])
    assert (logits.grad[inactive] == 0).all()


@pytest.mark.parametrize("infinite", [math.inf, -math.inf])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("normaliser", ["pairs", "rows", "per_task"])
def test_an_infinite_logit_of_an_inactive_task_costs_nothing(
    infinite: float, soft: bool, normaliser: str
) -> None:
    """-log P(y) of its row is finite, whatever stands in the tasks that are never reached."""
    logits = torch.tensor([[0.3, -0.2, infinite, 1.0], [1.0, infinite, infinite, 2.0]])
    ranks = torch.tensor([1, 0])
    logits.requires_grad_()
    target = torch.eye(5)[ranks] if soft else ranks
    loss = corn_loss(logits, target, reduction="none", normaliser=normaliser)
    expected = -corn_log_probabilities(logits.detach()).gather(1, ranks[:, None]).squeeze(1)
    torch.testing.assert_close(loss.detach(), expected)
    corn_loss(logits, target, normaliser=normaliser).backward()
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[0, 2:] == 0).all()


@pytest.mark.parametrize("loss", [corn_loss, ornn_loss])
def test_an_infinite_logit_that_is_wrong_costs_infinitely_much(loss) -> None:
    logits = torch.tensor([[math.inf, 0.0]])
    assert loss(logits, torch.tensor([0]), reduction="sum") == math.inf
    assert loss(logits, torch.tensor([2]), reduction="sum") == pytest.approx(math.log(2))


def test_ornn_and_coral_are_one_loss_and_corn_without_subsets_too() -> None:
    logits, ranks = torch.randn(20, 6), torch.randint(7, (20,))
    expected = torch.nn.functional.binary_cross_entropy_with_logits(
        logits, (ranks.unsqueeze(1) > torch.arange(6)).float()
    )
    for loss in (ornn_loss, coral_loss, corn_without_subsets_loss):
        torch.testing.assert_close(loss(logits, ranks), expected)


def test_published_mask_leaves_out_the_lowest_rank() -> None:
    logits, ranks = torch.randn(30, 6), torch.randint(7, (30,))
    above = ranks > 0
    for normaliser in ("pairs", "rows", "per_task"):
        found = corn_without_subsets_loss(logits, ranks, mask="published", normaliser=normaliser)
        expected = ornn_loss(logits[above], ranks[above], normaliser=normaliser)
        torch.testing.assert_close(found, expected)


def test_task_weight_is_part_of_the_count_of_pairs_only() -> None:
    logits, ranks = torch.randn(9, 3), torch.randint(4, (9,))
    weight = torch.tensor([0.5, 2.0, 0.0])
    per_task = [
        loss_parts(ornn_loss, logits[:, [k]], (ranks > k).long()) for k in range(3)
    ]  # each a plain binary problem
    total = sum(w * parts.total for w, parts in zip(weight, per_task, strict=True))
    pairs = ornn_loss(logits, ranks, task_weight=weight)
    torch.testing.assert_close(pairs, total / (9 * weight.sum()))
    rows = ornn_loss(logits, ranks, task_weight=weight, normaliser="rows")
    torch.testing.assert_close(rows, total / 9)
    conditional = loss_parts(corn_loss, logits, ranks, task_weight=weight)
    active = ranks.unsqueeze(1) >= torch.arange(3)
    torch.testing.assert_close(conditional.count, (active * weight).sum())


@pytest.mark.parametrize("normaliser", ["pairs", "rows", "per_task"])
@pytest.mark.parametrize("loss", [ornn_loss, corn_loss])
def test_nothing_but_tasks_of_weight_zero_is_a_loss_of_zero(loss, normaliser: str) -> None:
    logits, ranks = torch.randn(6, 4, requires_grad=True), torch.zeros(6, dtype=torch.long)
    for weight in ([0.0, 0, 0, 0], [0.0, 1, 1, 1]):
        if loss is ornn_loss and any(weight):
            continue  # where all tasks are active, something is left
        found = loss(logits, ranks, task_weight=weight, normaliser=normaliser)
        assert found == 0
        assert torch.equal(torch.autograd.grad(found, logits)[0], torch.zeros(6, 4))


def test_parts_can_be_summed() -> None:
    logits, ranks = torch.randn(6, 4), torch.arange(6) % 5
    parts = [loss_parts(corn_loss, logits[i : i + 2], ranks[i : i + 2]) for i in (0, 2, 4)]
    torch.testing.assert_close(sum(parts).mean(), corn_loss(logits, ranks))


@pytest.mark.parametrize("name", ["ornn", "coral"])
@given(logits=st.data())
def test_the_median_is_the_papers_count(name: str, logits: st.DataObject) -> None:
    # Values within rounding of 0, other than 0 itself, have no definite side of 0.5.
    values = finite.filter(lambda z: z == 0 or abs(z) > 1e-5)
    tasks = logits.draw(st.sampled_from([1, 2, 5, 12, 999]))
    raw = torch.from_numpy(logits.draw(arrays("float32", (4, tasks), elements=values)))
    curve = method(name, num_classes=tasks + 1).curve(raw)
    assert torch.equal(curve.median(), (torch.sigmoid(raw) > 0.5).sum(-1))


def test_many_exceedances_just_above_one_half_all_count() -> None:
    raw = torch.full((1, 999), -5.0)
    raw[0, :500] = 1e-5
    assert method("ornn", num_classes=1000).curve(raw).median().item() == 500


def test_equal_exceedances_have_a_gradient() -> None:
    raw = torch.zeros(1, 3, requires_grad=True)
    method("coral", num_classes=4).curve(raw).mean().sum().backward()
    torch.testing.assert_close(raw.grad.sum(), torch.tensor(0.75))  # 3 sigmoids of slope 1/4


def test_sorting_repairs_a_contradiction() -> None:
    raw = torch.logit(torch.tensor([[0.3, 0.8, 0.1]]))
    curve = method("ornn", num_classes=4).curve(raw)
    torch.testing.assert_close(curve.exceedance, torch.tensor([[0.8, 0.3, 0.1]]))
    torch.testing.assert_close(curve.crossings(), torch.tensor([0.5]))


def test_equal_exceedances_mean_a_rank_of_probability_zero() -> None:
    log_probabilities = sorted_log_probabilities(torch.tensor([[1.0, 1.0]]))
    assert log_probabilities[0, 1] == -math.inf
    assert log_probabilities.exp().sum().item() == pytest.approx(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"normaliser": "tasks"}, "normaliser must be one of 'pairs', 'rows', 'per_task'"),
        ({"mask": "some"}, "mask must be one of 'all', 'published'; got 'some'"),
    ],
)
def test_unknown_choices_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        corn_without_subsets_loss(torch.zeros(2, 3), torch.tensor([0, 1]), **options)


# ---- margins ---------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**31), num_classes=st.integers(2, 9))
def test_margins_with_the_logistic_penalty_are_coral(seed: int, num_classes: int) -> None:
    torch.manual_seed(seed)
    logits = (torch.randn(16, num_classes) * 4).requires_grad_()
    ranks, weight = torch.randint(num_classes, (16,)), torch.rand(num_classes - 1)
    # Both get the same margins to the bit: first the lowest, then how far apart they are.
    widths = torch.cat([logits[:, :1], softplus(logits[:, 1:-1].contiguous(), 1, 40)], 1)
    margins = -widths.double().cumsum(1).float()
    soft = torch.rand(16, num_classes).softmax(-1)
    for labels in (ranks, soft):
        for reduction in ("mean", "sum", "none"):
            options = {"task_weight": weight, "reduction": reduction}
            found = margin_loss(logits, labels, penalty="logistic", **options)
            assert torch.equal(found, coral_loss(margins, labels, **options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"thresholds": "some"}, "thresholds must be one of 'all', 'immediate'; got 'some'"),
        ({"penalty": "square"}, "penalty must be one of 'hinge', 'smooth_hinge'.*; got 'square'"),
    ],
)
def test_margins_refuse_what_they_cannot_do(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        method("margin", 4, **options)


def test_margins_by_hand() -> None:
    """A score of 0.5 among cutpoints at 0, 1 and 2, for rank 1: margins 0.5, 0.5 and 1.5."""
    one = torch.tensor(1.0).expm1().log().item()
    logits, ranks = torch.tensor([[-0.5, one, one, 0.0]]), torch.tensor([1])
    expected = {"hinge": 1.0, "smooth_hinge": 0.25, "squared_hinge": 0.5}
    for penalty, value in expected.items():
        for thresholds in ("all", "immediate"):  # the third cutpoint is far enough away
            found = margin_loss(
                logits, ranks, penalty=penalty, thresholds=thresholds, reduction="sum"
            )
            assert found.item() == pytest.approx(value)
