"""The methods with one score, beyond what all methods have in common."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import norm
from torch import Tensor
from torch.nn.functional import softplus

from echelon.functional import (
    clm_log_probabilities,
    clm_loss,
    regression_log_probabilities,
    regression_loss,
)
from echelon.methods import method
from tests.reference import probabilities


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_equals_the_textbook_with_cutpoints(link: str) -> None:
    cdf = {
        "logit": torch.sigmoid,
        "probit": torch.special.ndtr,
        "cloglog": lambda x: 1 - torch.exp(-torch.exp(x)),
    }[link]
    head = method("clm", 6, link=link).head(3, dtype=torch.float64)
    features = torch.randn(10, 3, dtype=torch.float64)
    below = cdf(head.cutpoints - head.score(features))  # (10, K-1)
    expected = torch.diff(
        below, prepend=torch.zeros(10, 1).double(), append=torch.ones(10, 1).double()
    )
    torch.testing.assert_close(clm_log_probabilities(head(features), link=link).exp(), expected)


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
@pytest.mark.parametrize("score", [-80.0, -40.0, -5.0, 0.0, 3.0, 40.0, 69.0])
@pytest.mark.parametrize("step", [-30.0, -3.0, 0.0, 5.0])
def test_exact_for_close_and_far_cutpoints(link: str, score: float, step: float) -> None:
    logits = [score, step, step]
    expected = probabilities("clm", logits, 4, link)
    found = clm_log_probabilities(torch.tensor(logits), link=link).tolist()
    for one, p in zip(found, expected, strict=True):
        if p > 0:
            from mpmath import log

            assert one == pytest.approx(float(log(p)), rel=2e-5, abs=1e-6)


def test_cloglog_is_clamped_beyond_80() -> None:
    for score in (81.0, 200.0, 1e4):
        far = clm_log_probabilities(torch.tensor([score, 0.0]), link="cloglog")
        assert far[2] == clm_log_probabilities(torch.tensor([80.0, 0.0]), link="cloglog")[2]
        assert torch.isfinite(far).all()


def test_the_mean_of_a_large_batch_is_finite_where_its_rows_are() -> None:
    logits = torch.tensor([[81.0, 0, 0]]).repeat(8192, 1).requires_grad_()
    made = method("clm", 4, link="cloglog")
    loss = made.loss(logits, torch.full((8192,), 3))
    assert loss.item() == pytest.approx(math.exp(80), rel=1e-5)
    assert loss.dtype == torch.float32


def latent_ranks(spread: float, n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Values between 0 and 8, and the ranks 0..8 that they have with some noise."""
    generator = np.random.default_rng(seed)
    values = generator.uniform(0, 8, n)
    ranks = np.clip(np.round(values + spread * generator.normal(size=n)), 0, 8)
    return torch.from_numpy(values), torch.from_numpy(ranks).long()


def fitted_log_sigma(values: torch.Tensor, ranks: torch.Tensor) -> float:
    """What the loss makes of the spread where the values are given."""
    log_sigma = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([log_sigma], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        logits = torch.stack([values, log_sigma.expand(len(values))], 1)
        regression_loss(logits, ranks, num_classes=9).backward()
        # its value does not tell how well the spread fits, so the optimiser gets what does
        chosen = -regression_log_probabilities(logits, num_classes=9).gather(1, ranks[:, None])
        return chosen.mean().detach()

    optimiser.step(closure)
    return float(log_sigma.detach())


def interval_likelihood(log_sigma: float, values: np.ndarray, ranks: np.ndarray) -> float:
    """-log P(rank), by scipy."""
    lower = np.where(ranks == 0, -np.inf, ranks - 0.5)
    upper = np.where(ranks == 8, np.inf, ranks + 0.5)
    scale = np.exp(log_sigma)
    below, above = (norm.cdf(edge, loc=values, scale=scale) for edge in (lower, upper))
    return -np.log(np.maximum(above - below, 1e-300)).mean()


@pytest.mark.parametrize("spread", [0.15, 0.5, 2.0])
def test_regression_fits_its_spread_by_the_likelihood_of_the_ranks(spread: float) -> None:
    values, ranks = latent_ranks(spread, 4000, seed=0)
    found = fitted_log_sigma(values, ranks)
    best = minimize_scalar(
        interval_likelihood, bounds=(-4, 2), args=(values.numpy(), ranks.numpy()), method="bounded"
    )
    assert found == pytest.approx(best.x, abs=1e-4)
    # and that is the spread that made the ranks, within its standard error (found by the curvature)
    step = 0.01
    around = [interval_likelihood(best.x + d, values.numpy(), ranks.numpy()) for d in (-step, step)]
    error = (4000 * (sum(around) - 2 * best.fun) / step**2) ** -0.5
    assert abs(best.x - math.log(spread)) < 3 * error


def test_regression_has_the_value_of_the_squared_error() -> None:
    values, ranks = latent_ranks(1.0, 100, seed=1)
    logits = torch.stack([values, torch.full((100,), -1.0, dtype=torch.float64)], 1)
    loss = regression_loss(logits, ranks, num_classes=9)
    torch.testing.assert_close(loss, (ranks - values).square().mean())


def test_the_spread_has_the_slope_of_the_curve() -> None:
    torch.manual_seed(0)
    # spreads of half a rank and of millions of ranks, and beyond the limits of log_sigma
    for magnitude, spread in itertools.product((1.0, 30.0, 1e4), (1.0, 12.0, 40.0)):
        logits = torch.stack([torch.randn(200) * magnitude, torch.randn(200) * spread], 1).double()
        logits.requires_grad_()
        for num_classes in (2, 3, 9):
            ranks = torch.randint(num_classes, (200,))
            logs = regression_log_probabilities(logits, num_classes=num_classes)
            expected = torch.autograd.grad(-logs.gather(1, ranks[:, None]).sum(), logits)[0]
            loss = regression_loss(logits, ranks, num_classes=num_classes, reduction="sum")
            found = torch.autograd.grad(loss, logits)[0]
            torch.testing.assert_close(found[:, 1], expected[:, 1], rtol=1e-9, atol=1e-9)


def test_the_spread_does_not_reach_the_network() -> None:
    value = torch.randn(6, 1, requires_grad=True)
    gradients = []
    for log_sigma in (-2.0, 3.0):
        logits = torch.cat([value, torch.full((6, 1), log_sigma)], 1)
        loss = regression_loss(logits, torch.arange(6), num_classes=6)
        gradients.append(torch.autograd.grad(loss, value)[0])
    torch.testing.assert_close(gradients[0], gradients[1], rtol=0, atol=0)


def test_regression_probabilities_are_those_of_scipy() -> None:
    value, sigma = 1.3, 0.8
    curve = method("regression", 4).curve(torch.tensor([[value, math.log(sigma)]]))
    edges = norm.cdf(np.array([-np.inf, 0.5, 1.5, 2.5, np.inf]), loc=value, scale=sigma)
    np.testing.assert_allclose(curve.probabilities[0], np.diff(edges), rtol=1e-5)


def test_regression_needs_value_and_spread() -> None:
    with pytest.raises(ValueError, match=r"needs logits \(\.\.\., 2\).*got \(3, 4\)"):
        regression_loss(torch.zeros(3, 4), torch.tensor([0, 1, 2]), num_classes=5)


def test_unknown_link_is_refused() -> None:
    with pytest.raises(ValueError, match="link must be one of 'logit', 'probit', 'cloglog'"):
        method("clm", 4, link="cauchit")


def test_steps_are_softplus_distances() -> None:
    head = method("clm", 5).head(2)
    torch.testing.assert_close(head.cutpoints.diff(), softplus(head.steps))


# ---- the closed form of hard ranks ---------------------------------------------------------------


def by_every_rank(logits: Tensor, ranks: Tensor) -> Tensor:
    return -clm_log_probabilities(logits).gather(-1, ranks.unsqueeze(-1)).mean()


@pytest.mark.parametrize("num_classes", [2, 3, 9, 300])  # the last is above what is looked up
def test_the_closed_form_has_the_derivatives_of_the_curve(num_classes: int) -> None:
    generator = torch.Generator().manual_seed(num_classes)
    ranks = torch.randint(num_classes, (5, 4), generator=generator)
    ranks[0, :2] = torch.tensor([0, num_classes - 1])
    logits = torch.randn(5, 4, num_classes - 1, dtype=torch.float64, generator=generator)
    logits[..., 1:] -= 3  # close cutpoints, so that every rank has some of the mass
    logits.requires_grad_(True)
    direction = torch.randn(logits.shape, dtype=torch.float64, generator=generator)
    found, expected = [], []
    for loss, results in ((clm_loss, found), (by_every_rank, expected)):
        value = loss(logits, ranks)
        (slope,) = torch.autograd.grad(value, logits, create_graph=True)
        (curvature,) = torch.autograd.grad((slope * direction).sum(), logits)
        results += [value.detach(), slope.detach(), curvature]
    torch.testing.assert_close(found, expected)
    assert found[2].abs().max() > 1e-3  # the second derivative is there
    weighed = clm_loss(logits, ranks, sample_weight=torch.full((5, 4), 2.0), reduction="none")
    rows = -2 * clm_log_probabilities(logits).gather(-1, ranks.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(
        torch.autograd.grad(weighed, logits, direction[..., 0]),
        torch.autograd.grad(rows, logits, direction[..., 0]),
    )


def test_torch_func_differentiates_the_closed_form() -> None:
    logits, ranks = torch.randn(6, 4, dtype=torch.float64), torch.arange(6) % 5
    direction = torch.randn_like(logits)
    for transform in (torch.func.grad, torch.func.hessian):
        torch.testing.assert_close(
            transform(lambda z: clm_loss(z, ranks))(logits),
            transform(lambda z: by_every_rank(z, ranks))(logits),
        )
    forward = torch.func.jvp(lambda z: clm_loss(z, ranks), (logits,), (direction,))
    torch.testing.assert_close(
        forward, torch.func.jvp(lambda z: by_every_rank(z, ranks), (logits,), (direction,))
    )
