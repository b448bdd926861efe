"""Statistics in files: what a hostile author wrote is refused."""

from pathlib import Path

import pytest
import torch

import echelon
from tests.forging import rewrite
from tests.models.test_saved_links import fitted


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, t: d["model"]["fit"].update(free=[7]), "names columns that it has not"),
        (lambda d, t: t.update({"model.fit.slopes": torch.zeros(2, 2)}), "vector of numbers"),
        (lambda d, t: t.pop("model.statistics.counts"), "counts"),
        (lambda d, t: t["model.statistics.counts"].fill_(torch.nan), "its counts must be numbers"),
        (lambda d, t: d["model"]["statistics"].update(weights="x"), "what weights mean"),
        (lambda d, t: d["model"]["statistics"].update(rows="x"), "rows must be of type int"),
        (
            lambda d, t: t.update({"model.statistics.x": torch.zeros(1)}),
            "tensors that have no place",
        ),
        (
            lambda d, t: d["model"]["design"]["features"][0][2].append(["expression", "", "f()"]),
            "a formula cannot hold",
        ),
        (
            lambda d, t: d["model"]["statistics"]["tests"]["brant"].update(overall={"degrees": 1}),
            "statistic",
        ),
    ],
)
def test_forged_statistics_are_refused(tmp_path: Path, change, message: str) -> None:
    model, _ = fitted(nonproportional=["dose"], tests=True)
    model.save(tmp_path / "m")
    rewrite(tmp_path / "m", tmp_path / "forged", change)
    with pytest.raises(ValueError, match=message):
        echelon.load(tmp_path / "forged")
