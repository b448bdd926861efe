"""What holds for the curve of every method."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import CURVE_CASES, Case, make_batch, oracle_logits
from tests.reference import probabilities

magnitudes = st.sampled_from([0.1, 1.0, 30.0, 1e4])
class_counts = st.integers(2, 12)
seeds = st.integers(0, 2**31)

every_case = pytest.mark.parametrize("case", CURVE_CASES, ids=str)


@every_case
@given(num_classes=class_counts, magnitude=magnitudes, seed=seeds)
def test_is_a_distribution(case: Case, num_classes: int, magnitude: float, seed: int) -> None:
    batch = make_batch(case, num_classes=num_classes, magnitude=magnitude, seed=seed)
    curve = batch.method.curve(batch.logits)
    assert curve.probabilities.shape == (12, num_classes)
    assert curve.exceedance.shape == (12, num_classes - 1)
    assert (curve.probabilities >= 0).all()
    torch.testing.assert_close(
        curve.probabilities.double().sum(-1), torch.ones(12).double(), rtol=0, atol=1e-6
    )
    assert ((curve.exceedance >= 0) & (curve.exceedance <= 1)).all()
    for label in (curve.median(), curve.mode(), curve.mean().round()):
        assert label.shape == (12,)
        assert ((label >= 0) & (label < num_classes)).all()


@every_case
@given(num_classes=class_counts, magnitude=magnitudes, seed=seeds)
def test_never_contradicts_itself(
    case: Case, num_classes: int, magnitude: float, seed: int
) -> None:
    batch = make_batch(case, num_classes=num_classes, magnitude=magnitude, seed=seed)
    curve = batch.method.curve(batch.logits)
    assert (curve.exceedance.diff(dim=-1) <= 0).all()
    assert (curve.crossings() >= 0).all()
    if not batch.method.can_cross:
        assert (curve.crossings() == 0).all()


@every_case
@pytest.mark.parametrize("decision", ["median", "mean", "mode", "costs", "cut-points"])
def test_no_rank_is_made_up_where_there_is_no_distribution(case: Case, decision: str) -> None:
    batch = make_batch(case)
    logits = batch.logits.detach().clone()
    logits[3] = float("nan")
    curve = batch.method.curve(logits)
    rule = {"costs": torch.ones(5, 5), "cut-points": torch.arange(4) + 0.5}.get(decision, decision)
    with pytest.raises(ValueError, match=r"1 of 12 rows have no distribution.* row 3"):
        curve.label(rule)
    found = curve.label(rule, missing=-1)
    assert found[3] == -1
    others = [i for i in range(12) if i != 3]
    torch.testing.assert_close(found[others], batch.method.curve(logits[others]).label(rule))


@pytest.mark.parametrize(
    "case", [c for c in CURVE_CASES if c.name in ("clm", "regression")], ids=str
)
@given(
    num_classes=st.sampled_from([3, 5, 20, 300]),
    score=st.floats(-1.5, 1.5),
    spread=st.floats(-30, 30),
    seed=seeds,
)
def test_is_a_distribution_whatever_the_head_has_learnt(
    case: Case, num_classes: int, score: float, spread: float, seed: int
) -> None:
    """Cutpoints far apart or close together, spreads wide or narrow, scores right among them."""
    torch.manual_seed(seed)
    method = case.method(num_classes)
    if case.name == "regression":
        cut = torch.randint(num_classes - 1, (8, 1)) + 0.5
        logits = torch.cat([cut * (1 + 1e-7 * torch.randn(8, 1)), torch.full((8, 1), spread)], 1)
    else:
        steps = torch.randn(8, num_classes - 2) * 3 + spread / 2
        through = torch.nn.functional.softplus(steps).cumsum(-1)
        picked = through.gather(1, torch.randint(num_classes - 2, (8, 1)))
        logits = torch.cat([score - picked, steps], 1)
    sums = method.curve(logits).probabilities.double().sum(-1)
    torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-6)


@pytest.mark.parametrize("case", [c for c in CURVE_CASES if c.is_unimodal], ids=str)
@given(num_classes=class_counts, magnitude=magnitudes, seed=seeds)
def test_rises_to_its_mode_and_falls(
    case: Case, num_classes: int, magnitude: float, seed: int
) -> None:
    batch = make_batch(case, num_classes=num_classes, magnitude=magnitude, seed=seed)
    logs = batch.method.curve(batch.logits).log_probabilities
    rises = logs.diff(dim=-1)
    rounding = 1e-5 * logs.abs().amax(-1, keepdim=True)
    has_fallen = (rises < -rounding).cummax(-1).values if num_classes > 1 else rises < 0
    assert not ((rises > rounding) & has_fallen).any()


def test_only_the_papers_inconsistent_methods_may_cross() -> None:
    crossing = [str(case) for case in CURVE_CASES if case.method(5).can_cross]
    assert crossing == ["ornn", "coral", "forest-bernoulli"]


@every_case
@given(seed=seeds)
def test_rows_do_not_see_each_other(case: Case, seed: int) -> None:
    batch = make_batch(case, seed=seed)
    order = torch.randperm(len(batch.ranks))
    permuted = batch.method.curve(batch.logits[order]).log_probabilities
    assert torch.equal(permuted, batch.method.curve(batch.logits).log_probabilities[order])
    alone = batch.method.curve(batch.logits[3]).log_probabilities
    torch.testing.assert_close(alone, batch.method.curve(batch.logits).log_probabilities[3])


@every_case
@pytest.mark.parametrize("num_classes", [2, 3, 7, 33])
def test_oracle_logits_decode_to_the_label(case: Case, num_classes: int) -> None:
    method, ranks = case.method(num_classes), torch.arange(num_classes)
    curve = method.curve(oracle_logits(method, ranks))
    absolute = (ranks.unsqueeze(0) - ranks.unsqueeze(1)).abs().float()
    for label in (curve.median(), curve.mode(), curve.mean().round().long()):
        assert torch.equal(label, ranks)
    assert torch.equal(curve.decide(absolute), ranks)
    assert (curve.crossings() == 0).all()


@every_case
@given(
    num_classes=st.integers(2, 6),
    magnitude=st.sampled_from([0.5, 5.0, 60.0]),
    seed=st.integers(0, 10_000),
)
def test_equals_the_reference_in_float32(
    case: Case, num_classes: int, magnitude: float, seed: int
) -> None:
    batch = make_batch(case, num_classes=num_classes, magnitude=magnitude, seed=seed, shape=(2,))
    found = batch.method.curve(batch.logits).log_probabilities
    options = {k: v for k, v in case.options.items() if k in ("link", "form", "leaves")}
    for row, logs in zip(batch.logits.tolist(), found, strict=True):
        expected = probabilities(case.name, row, num_classes, **options)
        for k, p in enumerate(expected):
            if p > 0:  # with 60 digits some differences are 0 that are not
                from mpmath import log

                assert logs[k].item() == pytest.approx(float(log(p)), rel=2e-5, abs=2e-6)


@every_case
@pytest.mark.parametrize("num_classes", [2, 101, 1000])
def test_many_classes(case: Case, num_classes: int) -> None:
    batch = make_batch(case, num_classes=num_classes, magnitude=10.0)
    curve = batch.method.curve(batch.logits)
    sums = curve.probabilities.double().sum(-1)
    torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-6)
    loss = batch.method.loss(batch.logits, batch.ranks)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(batch.features.grad).all()


@every_case
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(case: Case, dtype: torch.dtype) -> None:
    batch = make_batch(case, magnitude=20.0)
    half = batch.logits.detach().to(dtype)
    found = batch.method.curve(half).log_probabilities
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, batch.method.curve(half.float()).log_probabilities)


@every_case
def test_wrong_number_of_logits_is_refused(case: Case) -> None:
    method = case.method(5)
    with pytest.raises(ValueError, match=r"needs logits \(\.\.\., \d\).*got \(4, 9\)"):
        method.curve(torch.zeros(4, 9))
