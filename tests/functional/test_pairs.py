"""Ranking by pairs and lists, against loops and against linear machines on differences."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from echelon.functional import loss_parts, ranking_loss
from echelon.methods import method


def with_map(score: torch.Tensor, num_classes: int) -> torch.Tensor:
    """Logits of a score, with any map to a curve beside it."""
    return torch.cat([score.unsqueeze(1), torch.zeros(len(score), num_classes - 1).to(score)], 1)


@given(
    seed=st.integers(0, 2**31),
    num_classes=st.integers(2, 6),
    penalty=st.sampled_from(["hinge", "logistic"]),
    by_gap=st.booleans(),
    has_ties=st.booleans(),
)
def test_equals_a_double_loop(
    seed: int, num_classes: int, penalty: str, by_gap: bool, has_ties: bool
) -> None:
    torch.manual_seed(seed)
    score, weight = torch.randn(17, dtype=torch.float64) * 2, torch.rand(17).double()
    if has_ties:
        score = score.round()  # equal scores, and pairs right at the margin
    score.requires_grad_()
    ranks = torch.randint(num_classes, (17,))
    total, count = torch.zeros(()).double(), torch.zeros(()).double()
    for i, j in itertools.permutations(range(17), 2):
        if ranks[i] > ranks[j]:
            pair = weight[i] * weight[j] * (ranks[i] - ranks[j] if by_gap else 1)
            d = score[i] - score[j]
            cost = torch.relu(1 - d) if penalty == "hinge" else torch.log1p(torch.exp(-d))
            total, count = total + pair * cost, count + pair
    logits = with_map(score, num_classes)
    options = {"penalty": penalty, "gap_weight": by_gap, "sample_weight": weight}
    parts = loss_parts(ranking_loss, logits, ranks, **options)
    torch.testing.assert_close(parts.total[0], total)
    torch.testing.assert_close(parts.count[0], count)
    if total.requires_grad and not has_ties:
        found, expected = (torch.autograd.grad(x, score)[0] for x in (parts.total[0], total))
        torch.testing.assert_close(found, expected)


def test_large_and_close_scores_lose_nothing() -> None:
    score = 1e6 + torch.tensor([0.0, 0.25, 0.5, 3.0])
    found = ranking_loss(with_map(score, 4), torch.arange(4), reduction="sum")
    assert found.item() == pytest.approx(0.75 + 0.5 + 0.75)


def test_listnet_by_hand() -> None:
    score, ranks = torch.tensor([0.5, -1.0, 2.0]), torch.tensor([0, 2, 1])
    expected = -(torch.softmax(ranks / 0.5, 0) * torch.log_softmax(score, 0)).sum()
    found = ranking_loss(with_map(score, 3), ranks, penalty="listnet", temperature=0.5)
    torch.testing.assert_close(found, expected)


def differences(features: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    pairs = itertools.permutations(range(len(ranks)), 2)
    return np.array([features[i] - features[j] for i, j in pairs if ranks[i] > ranks[j]])


@pytest.mark.parametrize("penalty", ["hinge", "logistic"])
def test_a_linear_score_is_a_linear_machine_on_differences(penalty: str) -> None:
    generator = np.random.default_rng(3)
    features = generator.normal(size=(40, 2))
    ranks = np.digitize(features @ [1.0, -0.5] + generator.normal(size=40), [-0.7, 0.6])
    plus = differences(features, ranks)
    x, y, c = np.concatenate([plus, -plus]), np.repeat([1, -1], len(plus)), 0.01
    if penalty == "hinge":
        machine = LinearSVC(loss="hinge", fit_intercept=False, C=c / 2, tol=1e-9, max_iter=10**6)
    else:
        machine = LogisticRegression(fit_intercept=False, C=c / 2, tol=1e-10)
    expected = machine.fit(x, y).coef_[0]

    def objective(w: np.ndarray) -> float:
        score = torch.from_numpy(features @ w)
        total = ranking_loss(
            with_map(score, 3), torch.from_numpy(ranks), penalty=penalty, reduction="sum"
        )
        return 0.5 * w @ w + c * total.item()

    options = {"xatol": 1e-9, "fatol": 1e-14, "maxiter": 4000}
    found = minimize(objective, np.ones(2), method="Nelder-Mead", options=options)
    found = minimize(objective, found.x, method="Nelder-Mead", options=options)
    np.testing.assert_allclose(found.x, expected, atol=1e-4)


@pytest.mark.parametrize("penalty", ["hinge", "logistic", "listnet"])
def test_a_large_batch_needs_little_memory(penalty: str) -> None:
    """All pairs of 4,096 rows would be 16 million numbers for every operator."""
    torch.manual_seed(0)
    logits = torch.randn(4096, 8, requires_grad=True)
    largest = 0

    def note(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal largest
        largest = max(largest, tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        loss = ranking_loss(logits, torch.randint(8, (4096,)), penalty=penalty)
    loss.backward()
    assert largest <= 2**18 + 2**12
    assert torch.isfinite(logits.grad).all()


def test_groups_of_a_large_batch_stand_for_all_pairs() -> None:
    torch.manual_seed(0)
    score, ranks = torch.randn(1500), torch.randint(4, (1500,))
    score = score + 0.5 * ranks
    for order in (torch.arange(1500), torch.argsort(ranks)):  # sorted batches too
        logits = with_map(score[order], 4)
        parts = loss_parts(ranking_loss, logits, ranks[order], penalty="logistic")
        d = score.unsqueeze(1) - score
        is_pair = ranks.unsqueeze(1) > ranks
        assert parts.count[0] == is_pair.sum()
        expected = torch.nn.functional.softplus(-d)[is_pair].mean()
        torch.testing.assert_close(parts.mean(), expected, rtol=0.03, atol=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": "square"}, "penalty must be one of 'hinge', 'logistic', 'listnet'; got"),
        ({"gap_weight": 2}, "gap_weight must be true or false; got 2"),
        ({"gap_weight": True, "penalty": "listnet"}, "gap_weight weighs pairs, and 'listnet' has"),
        ({"temperature": 0.0}, "temperature must be a number above 0; got 0"),
    ],
)
def test_refuses_what_it_cannot_do(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        method("ranking", 3, **options)
