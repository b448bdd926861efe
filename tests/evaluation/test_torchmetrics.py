"""Metrics of torchmetrics: the same numbers as ours, from batches and from devices."""

import numpy as np
import pytest
import torch

from echelon.curve import RankCurve
from echelon.evaluation.metrics import METRICS, all_scores
from echelon.evaluation.torchmetrics import CurveMetric
from echelon.extras import require

torchmetrics = require("torchmetrics", "these tests")
K = 5


@pytest.fixture(scope="module")
def rows() -> tuple[RankCurve, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(60, K, generator=generator, dtype=torch.float64)
    return RankCurve(logits.log_softmax(-1)), torch.randint(K, (60,), generator=generator)


def expected(curve: RankCurve, ranks: torch.Tensor, weight=None) -> dict[str, float]:
    return all_scores(
        ranks.numpy(), curve.median().numpy(), curve.probabilities.numpy(), sample_weight=weight
    )


@pytest.mark.parametrize("name", METRICS)
def test_batches_of_any_size_give_the_metric_of_all_rows(name: str, rows) -> None:
    curve, ranks = rows
    weight = np.random.default_rng(0).random(60)
    plain, weighted = CurveMetric(name, K), CurveMetric(name, K)
    for places in (range(7), range(7, 8), range(8, 60)):
        part = torch.tensor(list(places))
        plain.update(curve.rows(part), ranks[part])
        weighted.update(curve.rows(part), ranks[part], torch.as_tensor(weight[part.numpy()]))
    assert float(plain.compute()) == pytest.approx(expected(*rows)[name], rel=1e-6)
    assert float(weighted.compute()) == pytest.approx(expected(*rows, weight)[name], rel=1e-6)
    assert plain.higher_is_better == METRICS[name].higher_is_better


@pytest.mark.parametrize("name", ["quadratic_weighted_kappa", "ranked_probability_score"])
def test_states_of_two_devices_add_up(name: str, rows) -> None:
    """As torchmetrics gathers them: each state is reduced by the function it was added with."""
    curve, ranks = rows
    one, other, both = (CurveMetric(name, K) for _ in range(3))
    first, second = torch.arange(20), torch.arange(20, 60)
    one.update(curve.rows(first), ranks[first])
    other.update(curve.rows(second), ranks[second])
    for state, reduction in one._reductions.items():
        gathered = torch.stack([getattr(one, state), getattr(other, state)])
        setattr(both, state, reduction(gathered))
    both._update_count = 1
    assert float(both.compute()) == pytest.approx(expected(*rows)[name], rel=1e-6)


def test_probabilities_dense_outputs_and_rows_without_a_label(rows) -> None:
    curve, ranks = rows
    dense = curve.probabilities.reshape(3, 4, 5, K)
    marked = ranks.reshape(3, 4, 5).clone()
    marked[0, 0] = 255
    metric = CurveMetric("mae", K, ignore_index=255)
    metric.update(dense, marked)
    kept = torch.arange(5, 60)
    assert float(metric.compute()) == pytest.approx(
        expected(curve.rows(kept), ranks[kept])["mae"], rel=1e-6
    )


def test_a_decision_is_taken_as_the_curve_takes_it(rows) -> None:
    curve, ranks = rows
    cuts = np.array([0.2, 1.0, 2.5, 3.5])
    metric = CurveMetric("accuracy", K, decision=cuts)
    metric.update(curve, ranks)
    assert float(metric.compute()) == pytest.approx(
        float((curve.cut(cuts) == ranks).double().mean())
    )


def test_a_collection_and_an_epoch_after_another(rows) -> None:
    collection = torchmetrics.MetricCollection(
        {name: CurveMetric(name, K) for name in ("mae", "log_score")}
    )
    for _ in range(2):
        collection.update(*rows)
        found = collection.compute()
        assert float(found["mae"]) == pytest.approx(expected(*rows)["mae"], rel=1e-6)
        assert float(found["log_score"]) == pytest.approx(expected(*rows)["log_score"], rel=1e-6)
        collection.reset()


def test_a_collection_does_not_mix_up_what_is_equal_by_chance(rows) -> None:
    """After a batch on which two decisions agree, their tables are the same."""
    collection = torchmetrics.MetricCollection(
        {one: CurveMetric("mae", K, decision=one) for one in ("median", "mode")}
    )
    sure = torch.eye(K)[torch.tensor([0, 1])]
    collection.update(sure, torch.tensor([0, 1]))
    curve, ranks = rows
    collection.update(curve, ranks)
    for one in ("median", "mode"):
        alone = CurveMetric("mae", K, decision=one)
        alone.update(sure, torch.tensor([0, 1]))
        alone.update(curve, ranks)
        assert collection[one].compute() == alone.compute()
    assert collection["median"].compute() != collection["mode"].compute()


def test_no_rows_have_no_metric() -> None:
    metric = CurveMetric("mae", K, ignore_index=-1)
    metric.update(torch.full((2, K), 1 / K), torch.tensor([-1, -1]))
    assert torch.isnan(metric.compute())


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(ValueError, match=r"metric must be one of accuracy.*got 'mea'"):
        CurveMetric("mea", K)
    with pytest.raises(ValueError, match="num_classes must be at least 2; got 1"):
        CurveMetric("mae", 1)
    metric = CurveMetric("mae", K)
    with pytest.raises(ValueError, match=r"shape \(2, 5\).*got \(2, 4\)"):
        metric.update(torch.full((2, 4), 0.25), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"target must lie in 0\.\.4; got 0 to 9"):
        metric.update(torch.full((2, K), 1 / K), torch.tensor([0, 9]))
