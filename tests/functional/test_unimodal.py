"""Distributions with one mode, by hand."""

import pytest
import torch
from scipy.stats import binom, poisson

import echelon
from echelon.functional import unimodal_log_probabilities
from echelon.methods import method


def test_the_forms_of_one_score_are_the_distributions_they_are_named_after() -> None:
    logits = torch.tensor([[0.4, 0.0]], dtype=torch.float64)
    found = unimodal_log_probabilities(logits, num_classes=6, form="binomial").exp()
    expected = torch.from_numpy(binom.pmf(range(6), 5, torch.sigmoid(logits[0, 0]).item()))
    torch.testing.assert_close(found[0], expected)
    found = unimodal_log_probabilities(logits, num_classes=6, form="poisson").exp()
    masses = poisson.pmf(range(6), torch.nn.functional.softplus(logits[0, 0]).item())
    torch.testing.assert_close(found[0], torch.from_numpy(masses / masses.sum()))


@pytest.mark.parametrize("form", ["slopes", "binomial", "poisson"])
def test_starts_in_the_middle(form: str) -> None:
    torch.manual_seed(0)
    made = method("unimodal", 7, form=form)
    head = made.head(4)
    if form == "slopes":
        torch.nn.init.zeros_(head.value.bias)
    assert abs(made.curve(head(torch.zeros(1, 4))).mean().item() - 3) < 0.6


def test_slopes_by_hand() -> None:
    """Slopes 1, 2 and 4: rising 1, 3, 7 and falling 7, 6, 4, so that the lower ones are 1, 3, 4."""
    logits = torch.tensor([[1.0, 2.0, 4.0]]).expm1().log()
    found = unimodal_log_probabilities(logits, num_classes=3)
    torch.testing.assert_close(found, torch.log_softmax(torch.tensor([[1.0, 3.0, 4.0]]), -1))


def test_who_is_unimodal_says_so() -> None:
    assert [name for name, row in echelon.METHODS.items() if row.is_unimodal] == ["unimodal"]


def test_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="form must be one of 'slopes', 'binomial', 'poisson'"):
        method("unimodal", 3, form="normal")
    with pytest.raises(ValueError, match=r"with 5 classes needs logits \(\.\.\., 2\).*got \(4, 5"):
        method("unimodal", 5, form="binomial").curve(torch.zeros(4, 5))
