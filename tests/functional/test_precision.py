"""Where half precision ends."""

import pytest
import torch

from echelon.functional._precision import as_float, wide, without_autocast


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_becomes_full_and_full_stays_itself(dtype: torch.dtype) -> None:
    half = torch.tensor([[1.5, -2.25]], dtype=dtype)
    assert as_float(half).dtype == torch.float32
    assert as_float(half).tolist() == half.tolist()
    for full in (half.float(), half.double()):
        assert as_float(full) is full
    assert wide(half).dtype == torch.float64


def test_products_are_not_rounded_where_they_must_not_be() -> None:
    exact = torch.tensor([[1.0 + 2.0**-12]])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (exact @ exact).dtype == torch.bfloat16
        with without_autocast(exact.device):
            product = exact @ exact
        assert (exact @ exact).dtype == torch.bfloat16
    assert product.dtype == torch.float32
    assert product.item() == pytest.approx((1 + 2.0**-12) ** 2, rel=1e-7)


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        ([[0.0]], "got list"),
        (torch.ones(2, 2, dtype=torch.long), r"got torch\.int64"),
        (torch.ones(2, 2, dtype=torch.complex64), r"got torch\.complex64"),
        (torch.tensor(1.0), "got a scalar"),
    ],
)
def test_what_cannot_be_logits_is_named(logits, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_float(logits)
