"""What tests and intervals promise, over 500 simulated tables."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from echelon import CumulativeLinkModel
from echelon.models.links import LINKS
from tests.models.test_effects import true_effects, true_probabilities
from tests.models.test_saved_links import fitted
from tests.models.test_statistics import compare_with_statsmodels
from tests.simulated import BETA, rejections, simulated

TABLES = 500


def test_both_tests_of_proportional_odds_have_their_size_and_power() -> None:
    noise = 3 * np.sqrt(0.05 * 0.95 / TABLES)
    for name, share in rejections(TABLES).items():
        print(f"size {name} {share:.3f}")
        assert abs(share - 0.05) < noise
    # slopes 0.55, 0.8 and 1.05 of one column at the three thresholds, 1,500 rows
    for name, share in rejections(TABLES, n=1500, violation=0.25).items():
        print(f"power {name} {share:.3f}")
        assert share >= 0.8


def test_intervals_of_odds_ratios_and_effects_cover() -> None:
    inside: dict[str, list[bool]] = {"ratio": [], "robust": [], "effect": [], "probability": []}
    for seed in range(TABLES):
        x, ranks = simulated(seed)
        frame = pd.DataFrame(x, columns=["a", "b"])
        model = CumulativeLinkModel().fit(frame, ranks)
        for name, errors in (("ratio", "observed"), ("robust", "robust")):
            row = model.summary(errors=errors).frame()
            inside[name] += (
                (row["ratio_lower"] < np.exp(BETA)) & (np.exp(BETA) < row["ratio_upper"])
            ).tolist()
        effects = model.marginal_effects(frame)
        truth = true_effects(x).reshape(-1)
        inside["effect"] += ((effects["lower"] < truth) & (truth < effects["upper"])).tolist()
        at = model.probabilities_at({"a": 1.0, "b": 1})
        p = true_probabilities(np.array([[1.0, 1.0]]))[0]
        inside["probability"] += ((at["lower"] < p) & (p < at["upper"])).tolist()
    for name, each in inside.items():
        print(f"coverage {name} {np.mean(each):.3f}")
        # several intervals of a table move together, so that a table counts once
        assert abs(np.mean(each) - 0.95) < 3 * np.sqrt(0.05 * 0.95 / TABLES), name


@pytest.mark.parametrize("link", LINKS)
def test_slopes_by_threshold_and_formulas_have_a_graph(tmp_path: Path, link: str) -> None:
    pytest.importorskip("onnxruntime")
    formula = "~ log(dose) + I(dose ** 2) + C(kind)"
    model, _ = fitted(formula=formula, nonproportional=["C(kind)"], link=link)
    model.export_onnx(tmp_path / "m.onnx")  # which compares it with the model


@pytest.mark.realdata
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("name", ["cement_strength", "winequality-white"])
def test_equals_statsmodels_on_real_tables(link: str, name: str, real_data: Path) -> None:
    table = pd.read_csv(real_data / "tabular" / f"{name}.csv")
    _, ranks = np.unique(table.iloc[:, 0], return_inverse=True)
    compare_with_statsmodels(table.iloc[:, 1:], ranks, link)
