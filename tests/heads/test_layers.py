"""Output layers: how they start, and what they keep true."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import echelon
from echelon.heads import CutpointHead, RegressionHead, SharedWeightHead

every_method = pytest.mark.parametrize("name", echelon.METHODS)


@every_method
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("num_classes", [2, 3, 17, 1000])
def test_dtype_and_shape(name: str, dtype: torch.dtype, num_classes: int) -> None:
    method = echelon.method(name, num_classes)
    head = method.head(6, dtype=dtype)
    assert {parameter.dtype for parameter in head.parameters()} == {dtype}
    logits = head(torch.randn(2, 5, 6, dtype=dtype))
    assert logits.shape == (2, 5, method.num_logits)
    assert logits.dtype == dtype
    assert all(torch.isfinite(parameter).all() for parameter in head.parameters())


@every_method
def test_device(name: str) -> None:
    head = echelon.method(name, 5).head(6, device="meta")
    assert {parameter.device.type for parameter in head.parameters()} == {"meta"}
    assert head(torch.randn(3, 6, device="meta")).device.type == "meta"


@every_method
def test_init_follows_the_seed_and_can_be_repeated(name: str) -> None:
    def fresh() -> torch.nn.Module:
        torch.manual_seed(3)
        return echelon.method(name, 5).head(6)

    one, other = fresh(), fresh()
    for mine, yours in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, yours)
    torch.manual_seed(3)
    one.reset_parameters()
    for mine, yours in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, yours)


@pytest.mark.parametrize("num_classes", [2, 3, 16, 1000])
def test_coral_biases_start_descending(num_classes: int) -> None:
    head = SharedWeightHead(4, num_classes)
    assert (head.bias.diff() < 0).all()
    curve = echelon.method("coral", num_classes).curve(head(torch.zeros(1, 4)))
    assert curve.crossings().item() == 0
    torch.testing.assert_close(
        curve.probabilities[0], torch.full((num_classes,), 1 / num_classes), rtol=2e-3, atol=0
    )


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
@pytest.mark.parametrize("num_classes", [2, 3, 16, 1000])
def test_cutpoints_start_with_equally_likely_ranks(link: str, num_classes: int) -> None:
    method = echelon.method("clm", num_classes, link=link)
    curve = method.curve(method.head(4)(torch.zeros(1, 4)))
    torch.testing.assert_close(
        curve.probabilities[0], torch.full((num_classes,), 1 / num_classes), rtol=2e-3, atol=0
    )


@given(st.lists(st.floats(-50, 50, width=32), min_size=2, max_size=8))
def test_cutpoints_cannot_lose_their_order(values: list[float]) -> None:
    head = CutpointHead(4, num_classes=len(values) + 1)
    with torch.no_grad():
        head.first_cutpoint.fill_(values[0])
        head.steps.copy_(torch.tensor(values[1:]))
    assert (head.cutpoints.diff() >= 0).all()


def test_an_unknown_link_is_refused_by_the_head_too() -> None:
    with pytest.raises(ValueError, match="link must be one of 'logit', 'probit', 'cloglog'"):
        CutpointHead(4, 5, link="cauchit")


def test_regression_starts_in_the_middle() -> None:
    logits = RegressionHead(4, num_classes=7)(torch.zeros(1, 4))
    torch.testing.assert_close(logits, torch.tensor([[3.0, 0.5 * torch.tensor(4.0).log()]]))


@pytest.mark.parametrize("name", ["coral", "clm", "regression"])
def test_a_score_keeps_its_precision_under_autocast(name: str) -> None:
    head = echelon.method(name, 300).head(4)
    features = torch.randn(8, 4) * 200
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = head(features)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, head(features))
