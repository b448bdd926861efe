"""With two classes every method is something well known."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from tests.cases import Case, make_batch


def difference_logit(logits: Tensor) -> Tensor:
    """The logit of y = 1 of a softmax over two classes."""
    return logits[:, 1] - logits[:, 0]


@pytest.mark.parametrize("magnitude", [1.0, 30.0])
@pytest.mark.parametrize(
    ("name", "logit"),
    [
        ("ce", difference_logit),
        ("ornn", lambda logits: logits[:, 0]),
        ("coral", lambda logits: logits[:, 0]),
        ("corn", lambda logits: logits[:, 0]),
        ("corn_without_subsets", lambda logits: logits[:, 0]),
        ("clm", lambda logits: -logits[:, 0]),
        (Case("margin", {"penalty": "logistic"}), lambda logits: -logits[:, 0]),
    ],
)
def test_equals_plain_binary_cross_entropy(name: str | Case, logit, magnitude: float) -> None:
    case = Case(name) if isinstance(name, str) else name
    batch = make_batch(case, num_classes=2, magnitude=magnitude, dtype=torch.float64)
    found = batch.method.loss(batch.logits, batch.ranks)
    expected = binary_cross_entropy_with_logits(logit(batch.logits), batch.ranks.double())
    torch.testing.assert_close(found, expected)
    probability = batch.method.curve(batch.logits).probabilities[:, 1]
    torch.testing.assert_close(probability, torch.sigmoid(logit(batch.logits)))


def test_rps_is_the_squared_error_of_the_probability() -> None:
    batch = make_batch(Case("rps"), num_classes=2)
    probability = torch.softmax(batch.logits, -1)[:, 1]
    expected = (probability - batch.ranks).square().mean()
    torch.testing.assert_close(batch.method.loss(batch.logits, batch.ranks), expected)


def test_regression_is_the_squared_error() -> None:
    batch = make_batch(Case("regression"), num_classes=2)
    expected = (batch.logits[:, 0] - batch.ranks).square().mean()
    torch.testing.assert_close(batch.method.loss(batch.logits, batch.ranks), expected)


@pytest.mark.parametrize("num_classes", [2, 6])
@pytest.mark.parametrize("distance", ["absolute", "squared"])
def test_sord_tends_to_cross_entropy(num_classes: int, distance: str) -> None:
    ce = make_batch(Case("ce"), num_classes=num_classes)
    expected = ce.method.loss(ce.logits, ce.ranks)
    errors = []
    for temperature in (1.0, 0.3, 0.1, 0.01):
        sord = Case("sord", {"distance": distance, "temperature": temperature}).method(num_classes)
        errors.append((sord.loss(ce.logits, ce.ranks) - expected).abs().item())
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 1e-2
    assert errors[-1] < 1e-6


@pytest.mark.parametrize("num_classes", [2, 6])
def test_cnnpor_without_its_pairs_is_cross_entropy(num_classes: int) -> None:
    ce = make_batch(Case("ce"), num_classes=num_classes)
    cnnpor = Case("cnnpor", {"pair_weight": 0.0}).method(num_classes)
    expected = ce.method.loss(ce.logits, ce.ranks)
    torch.testing.assert_close(cnnpor.loss(ce.logits, ce.ranks), expected)
