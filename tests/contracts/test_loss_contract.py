"""What holds for the loss of every method."""

from typing import Any

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor

from echelon.functional import (
    loss_parts,
    softmax_log_probabilities,
    unimodal_log_probabilities,
)
from tests.cases import CASES, Batch, Case, make_batch, task_costs
from tests.reference import row_loss

seeds = st.integers(0, 2**31)
SOFTMAX = (softmax_log_probabilities, unimodal_log_probabilities)
class_counts = st.integers(2, 9)

every_case = pytest.mark.parametrize("case", CASES, ids=str)
# A row that stands beside others of the batch sees their order, and a copy of itself.
every_case_without_lists = pytest.mark.parametrize(
    "case", [case for case in CASES if not case.cuts_lists], ids=str
)
every_uncoupled_case = pytest.mark.parametrize(
    "case", [case for case in CASES if not case.is_flat], ids=str
)


def gradient(batch: Batch, loss: Tensor) -> Tensor:
    (result,) = torch.autograd.grad(loss, batch.logits, retain_graph=True)
    return result


def assert_same(batch: Batch, found: Tensor, expected: Tensor, **tolerance: float) -> None:
    """Equal in value, and in the gradient of the logits."""
    torch.testing.assert_close(found, expected, **tolerance)
    torch.testing.assert_close(gradient(batch, found), gradient(batch, expected), **tolerance)


# ---- value -----------------------------------------------------------------------------------


@every_uncoupled_case
@given(
    num_classes=st.integers(2, 6),
    magnitude=st.sampled_from([0.5, 5.0, 50.0]),
    seed=st.integers(0, 10_000),
)
def test_equals_the_reference(case: Case, num_classes: int, magnitude: float, seed: int) -> None:
    batch = make_batch(case, num_classes=num_classes, magnitude=magnitude, seed=seed, shape=(3,))
    found = batch.method.loss(batch.logits, batch.ranks, reduction="none")
    for row, rank, loss in zip(batch.logits.tolist(), batch.ranks.tolist(), found, strict=True):
        expected = float(row_loss(case.name, row, rank, num_classes, **case.options))
        # a softmax rounds to about 1e-7, the other formulas lose nothing
        of_softmax = case.method(num_classes).spec.log_probabilities in SOFTMAX
        rounding = 1e-6 if of_softmax else 1e-12
        assert loss.item() == pytest.approx(expected, rel=2e-5, abs=rounding)


@every_case
@given(num_classes=class_counts, magnitude=st.sampled_from([1.0, 30.0, 300.0, 1e4]), seed=seeds)
def test_gradient_in_float32_is_that_of_float64(
    case: Case, num_classes: int, magnitude: float, seed: int
) -> None:
    batch = make_batch(case, num_classes=num_classes, magnitude=magnitude, seed=seed)
    exact = batch.logits.detach().double().requires_grad_()
    batch.method.loss(exact, batch.ranks).backward()
    # At the kink of a hinge both sides are right, and rounding decides which it is.
    away = 0.01 * exact.grad.abs().max().item()
    for nudge in (1e-6, -1e-6):
        beside = exact.detach().mul(1 + nudge).requires_grad_()
        batch.method.loss(beside, batch.ranks).backward()
        assume(torch.allclose(beside.grad, exact.grad, rtol=0.01, atol=away))
    found = gradient(batch, batch.method.loss(batch.logits, batch.ranks)).double()
    scale = exact.grad.abs().max().item()
    rounding = 4 * torch.finfo(torch.float32).eps  # of the few terms of a saturated softmax
    torch.testing.assert_close(found, exact.grad, rtol=1e-4, atol=1e-6 * scale + rounding)


@every_case
@given(num_classes=class_counts, seed=seeds, scale=st.sampled_from([1e2, 1e4]))
def test_finite_for_extreme_logits(case: Case, num_classes: int, seed: int, scale: float) -> None:
    batch = make_batch(case, num_classes=num_classes, magnitude=scale, seed=seed)
    loss = batch.method.loss(batch.logits, batch.ranks)
    loss.backward()
    assert torch.isfinite(loss)
    for tensor in (batch.features, *batch.head.parameters()):
        assert tensor.grad is None or torch.isfinite(tensor.grad).all()
    assert torch.isfinite(batch.features.grad).all()


@every_case
@pytest.mark.parametrize("num_classes", [2, 5])
def test_gradcheck(case: Case, num_classes: int) -> None:
    batch = make_batch(case, num_classes=num_classes, seed=3, dtype=torch.float64)

    def loss(features: Tensor) -> Tensor:
        return batch.method.loss(batch.head(features), batch.ranks)

    assert torch.autograd.gradcheck(loss, (batch.features,))
    if case.borrows:
        return  # what the curve alone reads learns from a term without a value
    logits = batch.logits.detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: batch.method.loss(z, batch.ranks), (logits,))


@every_case
def test_torch_func_finds_the_same_value_and_gradient(case: Case) -> None:
    batch = make_batch(case, num_classes=5, seed=2)
    expected = batch.method.loss(batch.logits, batch.ranks)

    def loss(logits: Tensor) -> Tensor:
        return batch.method.loss(logits, batch.ranks)

    slope, value = torch.func.grad_and_value(loss)(batch.logits.detach())
    torch.testing.assert_close((value, slope), (expected, gradient(batch, expected)))


@every_case
def test_training_lowers_the_loss(case: Case) -> None:
    batch = make_batch(case, seed=1)
    optimiser = torch.optim.Adam(batch.head.parameters(), lr=0.05)
    losses = []
    for _ in range(60):
        loss = batch.method.loss(batch.head(batch.features.detach()), batch.ranks)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


# ---- weights ---------------------------------------------------------------------------------


@every_case
@given(num_classes=class_counts, seed=seeds)
def test_weights_of_one_change_nothing(case: Case, num_classes: int, seed: int) -> None:
    batch = make_batch(case, num_classes=num_classes, seed=seed)
    plain = batch.method.loss(batch.logits, batch.ranks)
    for ones in ({"sample_weight": torch.ones(12)}, {"class_weight": [1.0] * num_classes}):
        assert_same(batch, batch.method.loss(batch.logits, batch.ranks, **ones), plain)
    if batch.method.spec.has_binary_tasks:
        weighted = batch.method.loss(
            batch.logits, batch.ranks, task_weight=torch.ones(num_classes - 1)
        )
        assert_same(batch, weighted, plain)


@every_case
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@given(num_classes=class_counts, seed=seeds)
def test_weight_zero_is_leaving_the_row_out(
    case: Case, reduction: str, num_classes: int, seed: int
) -> None:
    batch = make_batch(case, num_classes=num_classes, seed=seed)
    keep = torch.rand(12) < 0.6
    kept = batch.method.loss(batch.logits[keep], batch.ranks[keep], reduction=reduction)
    by_row = batch.method.loss(
        batch.logits, batch.ranks, sample_weight=keep.float(), reduction=reduction
    )
    assert_same(batch, by_row, kept)
    marked = batch.ranks.masked_fill(~keep, -100)
    ignored = batch.method.loss(batch.logits, marked, ignore_index=-100, reduction=reduction)
    assert_same(batch, ignored, kept)


@every_case
@given(num_classes=class_counts, seed=seeds)
def test_class_weight_is_the_sample_weight_of_the_rank(
    case: Case, num_classes: int, seed: int
) -> None:
    batch = make_batch(case, num_classes=num_classes, seed=seed)
    per_class, per_row = torch.rand(num_classes), torch.rand(12)
    both = batch.method.loss(
        batch.logits, batch.ranks, sample_weight=per_row, class_weight=per_class
    )
    product = per_row * per_class[batch.ranks]
    assert_same(batch, both, batch.method.loss(batch.logits, batch.ranks, sample_weight=product))


@every_case_without_lists
@given(seed=seeds)
def test_a_whole_weight_is_repeating_the_row(case: Case, seed: int) -> None:
    batch = make_batch(case, seed=seed)
    times = torch.randint(0, 4, (12,))
    times[0] = 1
    repeated = batch.method.loss(
        batch.logits.repeat_interleave(times, 0), batch.ranks.repeat_interleave(times)
    )
    weighted = batch.method.loss(batch.logits, batch.ranks, sample_weight=times)
    assert_same(batch, weighted, repeated)


@every_case
@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("which", ["sample_weight", "class_weight", "task_weight"])
def test_weights_below_zero_and_without_end_are_refused(
    case: Case, which: str, wrong: float
) -> None:
    batch = make_batch(case)
    if which == "task_weight" and not batch.method.spec.has_binary_tasks:
        return
    weight = torch.ones({"sample_weight": 12, "class_weight": 5, "task_weight": 4}[which])
    weight[2] = wrong
    with pytest.raises(ValueError, match=f"{which} must be finite and not negative; got {wrong:g}"):
        batch.method.loss(batch.logits, batch.ranks, **{which: weight})


@every_case
@given(num_classes=class_counts, seed=seeds)
def test_the_count_may_leave_weights_out(case: Case, num_classes: int, seed: int) -> None:
    batch = make_batch(case, num_classes=num_classes, seed=seed)
    weight = torch.rand(12)
    plain = batch.method.loss_parts(batch.logits, batch.ranks)
    weighed = batch.method.loss_parts(batch.logits, batch.ranks, sample_weight=weight)
    found = batch.method.loss_parts(
        batch.logits, batch.ranks, sample_weight=weight, weigh_count=False
    )
    torch.testing.assert_close(found.total, weighed.total)
    torch.testing.assert_close(found.count, plain.count)
    assert not found.count.requires_grad


@every_case
@pytest.mark.parametrize("rubbish", [float("nan"), float("inf"), -float("inf")])
def test_ignored_rows_may_hold_anything(case: Case, rubbish: float) -> None:
    batch = make_batch(case)
    ranks = batch.ranks.clone()
    ranks[4:] = -1
    features = batch.features.detach().clone().requires_grad_()
    logits = batch.head(features)
    spoilt = torch.cat([logits[:4], logits[4:] * rubbish])
    loss = batch.method.loss(spoilt, ranks, ignore_index=-1)
    torch.testing.assert_close(loss, batch.method.loss(batch.logits[:4], batch.ranks[:4]))
    loss.backward()
    assert torch.isfinite(features.grad[:4]).all()


@every_case
@pytest.mark.parametrize("soft", [False, True])
def test_rows_of_weight_zero_may_hold_anything(case: Case, soft: bool) -> None:
    if soft and case.is_flat:
        return
    batch = make_batch(case)
    weight = torch.ones(12)
    weight[4:] = 0
    target = torch.rand(12, 5).softmax(-1) if soft else batch.ranks
    expected = batch.method.loss(batch.logits[:4], target[:4])
    if soft:
        target[4:] = 0  # padding that is no distribution
    logits = batch.logits.detach().clone()
    logits[4:] = float("nan")
    logits.requires_grad_()
    loss = batch.method.loss(logits, target, sample_weight=weight)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert torch.isfinite(logits.grad).all()


@every_case
@pytest.mark.parametrize("empty", ["all ignored", "all weights 0", "no rows"])
def test_nothing_to_learn_from_is_a_loss_of_zero(case: Case, empty: str) -> None:
    batch = make_batch(case)
    if empty == "all ignored":
        loss = batch.method.loss(batch.logits, torch.full((12,), 9), ignore_index=9)
    elif empty == "all weights 0":
        loss = batch.method.loss(batch.logits, batch.ranks, sample_weight=torch.zeros(12))
    else:
        loss = batch.method.loss(batch.logits[:0], batch.ranks[:0])
    loss.backward()
    assert loss.item() == 0
    assert (batch.features.grad == 0).all()


# ---- reductions and shapes -------------------------------------------------------------------


@every_case
@given(num_classes=class_counts, seed=seeds)
def test_reductions_agree(case: Case, num_classes: int, seed: int) -> None:
    batch = make_batch(case, num_classes=num_classes, seed=seed)
    weights = {"sample_weight": torch.rand(12), "class_weight": torch.rand(num_classes)}
    parts = batch.method.loss_parts(batch.logits, batch.ranks, **weights)
    mean = batch.method.loss(batch.logits, batch.ranks, **weights)
    assert_same(batch, parts.mean(), mean)
    assert not parts.count.requires_grad
    total = batch.method.loss(batch.logits, batch.ranks, reduction="sum", **weights)
    if case.options.get("normaliser") != "per_task":
        assert_same(batch, parts.total.sum(), total)
    if not case.is_flat:
        rows = batch.method.loss(batch.logits, batch.ranks, reduction="none", **weights)
        assert rows.shape == (12,)
        assert_same(batch, rows.sum(), total)


@every_uncoupled_case
@given(num_classes=class_counts, seed=seeds)
def test_parts_of_two_batches_are_the_loss_of_both(case: Case, num_classes: int, seed: int) -> None:
    batch = make_batch(case, num_classes=num_classes, seed=seed)
    weight = torch.rand(12)
    halves = [
        batch.method.loss_parts(batch.logits[part], batch.ranks[part], sample_weight=weight[part])
        for part in (slice(5), slice(5, 12))
    ]
    whole = batch.method.loss(batch.logits, batch.ranks, sample_weight=weight)
    assert_same(batch, (halves[0] + halves[1]).mean(), whole)


@every_case_without_lists
@given(seed=seeds)
def test_order_of_rows_does_not_matter(case: Case, seed: int) -> None:
    batch = make_batch(case, seed=seed)
    order = torch.randperm(12)
    permuted = batch.method.loss(batch.logits[order], batch.ranks[order])
    assert_same(batch, permuted, batch.method.loss(batch.logits, batch.ranks))


@every_uncoupled_case
@pytest.mark.parametrize("shape", [(), (2, 3), (2, 3, 4)])
def test_extra_dimensions_equal_the_flattened_call(case: Case, shape: tuple[int, ...]) -> None:
    batch = make_batch(case, shape=shape)
    weight = torch.rand(shape)
    flat = batch.logits.reshape(-1, batch.logits.shape[-1]), batch.ranks.reshape(-1)
    for reduction in ("mean", "sum", "none"):
        found = batch.method.loss(
            batch.logits, batch.ranks, sample_weight=weight, reduction=reduction
        )
        expected = batch.method.loss(*flat, sample_weight=weight.reshape(-1), reduction=reduction)
        torch.testing.assert_close(found, expected.reshape(found.shape))
    assert found.shape == shape
    curve = batch.method.curve(batch.logits).log_probabilities
    assert curve.shape == (*shape, 5)


@every_case
@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.uint8])
def test_any_integer_dtype_will_do_for_ranks(case: Case, dtype: torch.dtype) -> None:
    batch = make_batch(case)
    found = batch.method.loss(batch.logits, batch.ranks.to(dtype))
    torch.testing.assert_close(found, batch.method.loss(batch.logits, batch.ranks))


# ---- soft labels -----------------------------------------------------------------------------


@every_uncoupled_case
@given(num_classes=class_counts, seed=seeds)
def test_soft_labels_give_the_expected_loss_and_count(
    case: Case, num_classes: int, seed: int
) -> None:
    batch = make_batch(case, num_classes=num_classes, seed=seed)
    method, soft = batch.method, torch.rand(12, num_classes).softmax(-1)
    weights: dict[str, Any] = {
        "sample_weight": torch.rand(12),
        "class_weight": torch.rand(num_classes),
    }
    if method.spec.has_binary_tasks:
        weights["task_weight"] = torch.rand(num_classes - 1)
    found = method.loss_parts(batch.logits, soft, **weights)
    total, count = 0.0, 0.0
    for k in range(num_classes):
        sample_weight = weights["sample_weight"] * soft[:, k]
        parts = method.loss_parts(
            batch.logits, torch.full((12,), k), **{**weights, "sample_weight": sample_weight}
        )
        total, count = total + parts.total, count + parts.count
    assert_same(batch, found.total.sum(), total.sum())
    torch.testing.assert_close(found.count, count)
    assert_same(batch, method.loss(batch.logits, soft, **weights), found.mean())


@every_uncoupled_case
@given(num_classes=class_counts, seed=seeds)
def test_a_soft_label_on_one_rank_is_that_rank(case: Case, num_classes: int, seed: int) -> None:
    batch = make_batch(case, num_classes=num_classes, seed=seed, magnitude=30.0)
    one_hot = torch.nn.functional.one_hot(batch.ranks, num_classes).float()
    for reduction in ("mean", "sum"):
        found = batch.method.loss(batch.logits, one_hot, reduction=reduction)
        assert_same(batch, found, batch.method.loss(batch.logits, batch.ranks, reduction=reduction))


@every_uncoupled_case
def test_soft_labels_at_extreme_logits_are_finite(case: Case) -> None:
    batch = make_batch(case, magnitude=1e4)
    loss = batch.method.loss(batch.logits, torch.nn.functional.one_hot(batch.ranks, 5).float())
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(batch.features.grad).all()


@every_uncoupled_case
@pytest.mark.parametrize(
    ("soft", "message"),
    [
        (torch.full((12, 5), 0.5), "sum to 1"),
        (torch.tensor([[1.5, -0.5, 0, 0, 0]] * 12), "non-negative"),
        (torch.full((12, 5), float("nan")), "sum to 1"),
        (torch.full((12, 4), 0.25), r"shape \(12, 5\).*got \(12, 4\)"),
        (torch.zeros(12), "must be integers; got torch.float32"),
    ],
)
def test_wrong_soft_labels_are_refused(case: Case, soft: Tensor, message: str) -> None:
    batch = make_batch(case)
    with pytest.raises(ValueError, match=message):
        batch.method.loss(batch.logits, soft)


# ---- errors ----------------------------------------------------------------------------------


@every_case
@pytest.mark.parametrize("wrong", [-1, 5, 6, 255])
def test_a_rank_outside_is_named(case: Case, wrong: int) -> None:
    batch = make_batch(case)
    ranks = batch.ranks.clone()
    ranks[7] = wrong
    with pytest.raises(ValueError, match=rf"rank {wrong} is outside 0\.\.4"):
        batch.method.loss(batch.logits, ranks)


@every_case
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reduction": "parts"}, "reduction must be one of 'mean', 'sum', 'none'; got 'parts'"),
        ({"reduction": "median"}, "reduction must be one of 'mean', 'sum', 'none'; got 'median'"),
        (
            {"sample_weight": torch.ones(3)},
            r"sample_weight must have the shape \(12,\); got \(3,\)",
        ),
        ({"class_weight": torch.ones(6)}, r"class_weight must have the shape \(5,\); got \(6,\)"),
        (
            {"ranks": torch.zeros(11, dtype=torch.long)},
            r"shape of the logits.*\(12,\); got \(11,\)",
        ),
        ({"ranks": torch.zeros(12, dtype=torch.bool)}, "ranks must be integers; got torch.bool"),
        ({"ranks": [0] * 12}, "ranks must be a tensor; got list"),
        ({"logits": "integers"}, "logits must be a floating-point tensor; got torch.int64"),
    ],
)
def test_wrong_arguments_are_named(case: Case, change: dict[str, Any], message: str) -> None:
    batch = make_batch(case)
    arguments = {"logits": batch.logits, "ranks": batch.ranks, **change}
    if change == {"logits": "integers"}:
        arguments["logits"] = batch.logits.long()
    with pytest.raises(ValueError, match=message):
        batch.method.loss(**arguments)


@every_case
def test_task_weight_is_refused_where_there_are_no_tasks(case: Case) -> None:
    batch = make_batch(case)
    if batch.method.spec.has_binary_tasks:
        with pytest.raises(ValueError, match=r"task_weight must have the shape \(4,\); got \(9,\)"):
            batch.method.loss(batch.logits, batch.ranks, task_weight=torch.ones(9))
    else:
        with pytest.raises(ValueError, match="has none: use class_weight"):
            batch.method.loss(batch.logits, batch.ranks, task_weight=torch.ones(4))


# ---- half precision --------------------------------------------------------------------------


@every_case
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("labels", ["hard", "soft"])
def test_autocast(case: Case, dtype: torch.dtype, labels: str) -> None:
    if labels == "soft" and case.is_flat:
        return  # refused, see test_cnnpor
    batch = make_batch(case, magnitude=20.0)
    target = batch.ranks if labels == "hard" else torch.rand(12, 5).softmax(-1)
    with torch.autocast("cpu", dtype=dtype):
        logits = batch.head(batch.features)
        loss = batch.method.loss(logits, target)
        found = batch.method.curve(logits).probabilities
    assert loss.dtype == found.dtype == torch.float32
    # The only error is the rounding of the logits themselves.
    expected = batch.method.loss(logits.detach().float(), target)
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-6)
    loss.backward()
    assert torch.isfinite(batch.features.grad).all()


@every_case
def test_float16_logits_at_their_limit(case: Case) -> None:
    batch = make_batch(case, magnitude=1e4)
    logits = batch.logits.detach().half().requires_grad_()
    loss = batch.method.loss(logits, batch.ranks)
    loss.backward()
    assert torch.isfinite(loss)
    with torch.autocast("cpu", torch.bfloat16):
        given = batch.method.head(3)(torch.ones(1, 3)).dtype
    # A head that gives float32 in spite of autocast never meets them, and its gradient may truly
    # exceed what float16 can hold.
    if given != torch.float32:
        assert torch.isfinite(logits.grad).all()


# ---- the function behind the method ----------------------------------------------------------


def test_parts_can_be_had_from_the_function_too() -> None:
    batch = make_batch(Case("corn"))
    parts = loss_parts(batch.method.spec.loss, batch.logits, batch.ranks)
    pairs = (batch.ranks + 1).clamp(max=4).sum()
    assert parts.count == pairs
    torch.testing.assert_close(
        parts.total, batch.method.loss(batch.logits, batch.ranks, reduction="sum")
    )


# ---- binary tasks ----------------------------------------------------------------------------


@every_case
@given(num_classes=class_counts, seed=seeds)
def test_tasks_are_what_the_loss_trains(case: Case, num_classes: int, seed: int) -> None:
    """The sum of the loss is what the active tasks cost, or there are none."""
    batch = make_batch(case, num_classes=num_classes, seed=seed, dtype=torch.float64)
    method, ranks = batch.method, batch.ranks
    if not method.spec.has_binary_tasks:
        with pytest.raises(ValueError, match=f"{case.name} has no binary tasks; ornn, coral, corn"):
            method.tasks(ranks)
        return
    targets, active = method.tasks(ranks)
    assert targets.shape == active.shape == (12, num_classes - 1)
    found = method.loss(batch.logits, ranks, reduction="sum")
    expected = (task_costs(case, batch.logits, targets) * active).sum()
    if case.borrows:  # the gradient of what the curve reads is not the loss's
        torch.testing.assert_close(found, expected)
        found, expected = (
            torch.autograd.grad(one, batch.features, retain_graph=True)[0]
            for one in (found, expected)
        )
        torch.testing.assert_close(found, expected)
    else:
        assert_same(batch, found, expected)


@every_case
def test_a_task_weight_is_taken_where_there_are_tasks(case: Case) -> None:
    batch = make_batch(case)
    if batch.method.spec.has_binary_tasks:
        batch.method.loss(batch.logits, batch.ranks, task_weight=torch.ones(4))
    else:
        with pytest.raises(ValueError, match="has none: use class_weight or sample_weight"):
            batch.method.loss(batch.logits, batch.ranks, task_weight=torch.ones(4))


# ---- dense outputs -------------------------------------------------------------------------------


@every_uncoupled_case
@pytest.mark.parametrize("dim", [0, 1, -3])
def test_logits_may_stand_in_any_dimension(case: Case, dim: int) -> None:
    """A map (N, J, height, width) costs what its places cost with their logits last."""
    batch = make_batch(case, num_classes=4, shape=(2, 3, 5))
    moved = batch.logits.movedim(-1, dim)
    for reduction in ("mean", "none"):
        expected = batch.method.loss(batch.logits, batch.ranks, reduction=reduction)
        found = batch.method.loss(moved, batch.ranks, reduction=reduction, dim=dim)
        torch.testing.assert_close(found, expected)
        options = {"reduction": reduction, **batch.method._loss_options}
        found = batch.method.spec.loss(moved, batch.ranks, dim=dim, **options)
        torch.testing.assert_close(found, expected)
    mass = torch.nn.functional.one_hot(batch.ranks, 4).to(batch.logits.dtype)
    expected = batch.method.loss(batch.logits, mass)
    torch.testing.assert_close(batch.method.loss(moved, mass.movedim(-1, dim), dim=dim), expected)
    parts = batch.method.loss_parts(moved, batch.ranks, dim=dim)
    torch.testing.assert_close(parts.mean(), batch.method.loss(batch.logits, batch.ranks))


@every_case
def test_the_curve_of_a_dense_output_has_its_ranks_last(case: Case) -> None:
    batch = make_batch(case, num_classes=4, shape=(6,))
    logits = batch.logits.detach()
    expected = batch.method.curve(logits)
    found = batch.method.curve(logits.T, dim=0)
    torch.testing.assert_close(found.log_probabilities, expected.log_probabilities)
    torch.testing.assert_close(found.crossings(), expected.crossings())
    from_numpy = batch.method.curve(logits.numpy())
    torch.testing.assert_close(from_numpy.log_probabilities, expected.log_probabilities)


def test_a_dimension_that_is_not_there_is_refused() -> None:
    case = CASES[0]
    batch = make_batch(case, num_classes=4, shape=(6,))
    with pytest.raises(ValueError, match=r"dim must be a dimension of the logits.*got 2"):
        batch.method.loss(batch.logits, batch.ranks, dim=2)
