"""The map from one score to a curve, and how it is fitted beside a loss."""

import pytest
import torch
from torch.nn.functional import softplus

import echelon
from echelon.functional import clm_loss, margin_log_probabilities, score_log_probabilities
from echelon.functional._labels import Labels
from echelon.functional._scores import (
    curve_of_margin_fit,
    curve_of_score_fit,
    cutpoint_distances,
)
from tests.cases import Case, make_batch

BORROWERS = [name for name, row in echelon.METHODS.items() if row.borrows_probabilities]
SCORES = [name for name in BORROWERS if name not in ("regression", "margin")]


@pytest.mark.parametrize("num_classes", [2, 3, 8])
def test_the_median_of_a_margin_is_the_count_rule(num_classes: int) -> None:
    torch.manual_seed(0)
    logits = torch.randn(500, num_classes) * 3
    distances = torch.cat([logits[:, :1], softplus(logits[:, 1:-1])], 1).cumsum(1)
    curve = echelon.method("margin", num_classes).curve(logits)
    assert torch.equal(curve.median(), (distances < 0).sum(1))


def test_a_scale_of_one_is_the_cumulative_link_model() -> None:
    logits = torch.randn(20, 5, dtype=torch.float64)
    one = torch.full((20, 1), 1.0, dtype=torch.float64).expm1().log()
    expected = echelon.functional.clm_log_probabilities(logits)
    torch.testing.assert_close(margin_log_probabilities(torch.cat([logits, one], 1)), expected)
    torch.testing.assert_close(score_log_probabilities(torch.cat([one, logits], 1)), expected)


@pytest.mark.parametrize("raw", [-80.0, -20.0, 0.0, 30.0])
def test_cutpoints_close_together_lose_no_probability(raw: float) -> None:
    logits = torch.tensor([[0.3, raw, raw, raw]], requires_grad=True)
    found = margin_log_probabilities(logits)
    (gradient,) = torch.autograd.grad(found.sum(), logits)
    assert torch.isfinite(found).all()
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("name", BORROWERS)
def test_the_fit_of_the_curve_never_moves_the_score(name: str) -> None:
    """The gradient of the features is that of the loss: none where the loss is flat."""
    batch = make_batch(Case(name), magnitude=2.0)
    batch.method.loss(batch.logits, batch.ranks).backward(retain_graph=True)
    learnt = [p for n, p in batch.head.named_parameters() if n in ("raw_scale", "log_sigma")]
    assert learnt
    assert all(parameter.grad.abs().sum() > 0 for parameter in learnt)
    likelihood = -batch.method.curve(batch.logits).log_probabilities[:, 0].sum()
    if name in SCORES:  # the head itself lets no gradient of the curve through
        grads = torch.autograd.grad(
            likelihood, batch.features, allow_unused=True, materialize_grads=True
        )
        assert (grads[0] == 0).all()


@pytest.mark.parametrize("size", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("num_classes", [2, 3, 7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_fit_of_a_curve_has_the_slope_of_its_likelihood(
    dtype: torch.dtype, num_classes: int, size: float
) -> None:
    torch.manual_seed(0)
    ranks = torch.randint(num_classes, (64,))
    logits = (torch.randn(64, num_classes, dtype=dtype) * size).requires_grad_()
    tolerance = {"rtol": 1e-9, "atol": 1e-9} if dtype == torch.float64 else {}
    (found,) = torch.autograd.grad(curve_of_score_fit(logits, ranks, None), logits)
    likelihood = -score_log_probabilities(logits).gather(1, ranks.unsqueeze(1)).sum()
    (expected,) = torch.autograd.grad(likelihood, logits)
    torch.testing.assert_close(found, expected, **tolerance)

    # of a margin only the scale, which underflows where it is far below 0
    distances = cutpoint_distances(logits[:, :1], softplus(logits[:, 1:-1], 1, 40))
    fit = curve_of_margin_fit(logits, logits[:, -1:], distances, Labels(ranks, None, None))
    (found,) = torch.autograd.grad(fit.sum(), logits)
    likelihood = -margin_log_probabilities(logits).gather(1, ranks.unsqueeze(1)).sum()
    (expected,) = torch.autograd.grad(likelihood, logits)
    torch.testing.assert_close(found[:, -1], expected[:, -1], **tolerance)


def test_the_scale_of_a_margin_learns_the_likelihood() -> None:
    """Its gradient is that of the negative log-likelihood, for hard and soft labels."""
    torch.manual_seed(1)
    logits = (torch.randn(30, 5, dtype=torch.float64) * 2).requires_grad_()
    ranks = torch.randint(5, (30,))
    method = echelon.method("margin", 5, normaliser="rows")
    (expected,) = torch.autograd.grad(
        -method.curve(logits).log_probabilities.gather(1, ranks.unsqueeze(1)).mean(), logits
    )
    for labels in (ranks, torch.nn.functional.one_hot(ranks, 5).double()):
        (found,) = torch.autograd.grad(method.loss(logits, labels), logits)
        torch.testing.assert_close(found[:, -1], expected[:, -1])


@pytest.mark.parametrize("name", SCORES)
def test_the_map_of_a_score_learns_as_a_cumulative_link_model(name: str) -> None:
    torch.manual_seed(1)
    logits = (torch.randn(32, 5, dtype=torch.float64) * 2).requires_grad_()
    ranks = torch.randint(5, (32,))
    (found,) = torch.autograd.grad(echelon.method(name, 5).loss(logits, ranks), logits)
    (expected,) = torch.autograd.grad(clm_loss(logits[:, 1:], ranks), logits)
    torch.testing.assert_close(found[:, 1:], expected[:, 1:])
