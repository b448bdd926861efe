"""What the paper and its logs report."""

import numpy as np
import pytest

from echelon.paper.figures import published, published_runs


def test_every_published_run_is_there() -> None:
    counts: dict[str, int] = {}
    for run in published_runs():
        counts[run["dataset"]] = counts.get(run["dataset"], 0) + 1
    assert counts == {
        "aes": 21, "afad": 25, "coursera": 20, "fireman": 25, "morph2": 25, "tripadvisor": 20,
    }  # fmt: skip
    assert np.mean([run["mae"] for run in published("fireman", "corn").values()]) == pytest.approx(
        0.764
    )
