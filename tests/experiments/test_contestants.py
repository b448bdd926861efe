"""Who competes: names, options, and what there is not."""

from pathlib import Path

import numpy as np
import pytest

from echelon.experiments import compare_methods
from tests.experiments.made_up import HERE, QUICK, task


def test_options_of_methods_make_methods_of_their_own(tmp_path: Path) -> None:
    specs = ["corn_without_subsets", "corn_without_subsets:mask=published", "sord:temperature=2"]
    runs = compare_methods(task(), specs, 1, tmp_path, parameters=QUICK, executor=HERE)
    by_name = {run.config.method: run for run in runs}
    assert set(specs) <= set(by_name)
    assert by_name[specs[2]].config.parameters["method_options"] == {"temperature": 2}
    words, mask = (by_name[spec].predictions["probabilities"] for spec in specs[:2])
    assert not np.array_equal(words, mask)
    with pytest.raises(ValueError, match="sord has no option 'warmth=2'"):
        compare_methods(task(), ["sord:warmth=2"], 1, tmp_path, executor=HERE)


@pytest.mark.parametrize(
    ("methods", "seeds", "message"),
    [(["magic"], 1, "got magic"), ([], 1, "got none"), (["ce"], 0, "seeds must be at least 1")],
)
def test_wrong_requests(tmp_path, methods, seeds, message) -> None:
    with pytest.raises(ValueError, match=message):
        compare_methods(task(), methods, seeds, tmp_path)
