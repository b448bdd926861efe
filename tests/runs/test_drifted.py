"""What says that a run's rows have drifted is checked before it is written and shown."""

from pathlib import Path

import pytest

from echelon.runs import add_drift, read_run
from echelon.runs.drifted import check_drift
from tests.made_runs import write_made_runs

TEST = {
    "name": "size", "what": "distribution", "distance": 0.2, "noise": 0.1, "p_value": 1e-6,
    "adjusted_p_value": 1e-5, "alarm": True, "sentence": "size: values lie elsewhere",
}  # fmt: skip
DOCUMENT = {"rows": 50, "level": 0.05, "tests": [TEST], "not_compared": ["said: no counts"]}


def test_it_is_added_to_a_finished_run_and_read_with_it(tmp_path: Path) -> None:
    folder = write_made_runs(tmp_path, rows=50, seeds=2)
    before = {path.name: path.read_bytes() for path in (folder / "corn-seed0").iterdir()}
    assert read_run(folder / "corn-seed0").drift is None
    add_drift(folder / "corn-seed0", DOCUMENT)
    assert read_run(folder / "corn-seed0").drift["tests"] == [TEST]
    for name, content in before.items():
        assert (folder / "corn-seed0" / name).read_bytes() == content
    content = (folder / "corn-seed0" / "drift.json").read_text()
    (folder / "corn-seed1" / "drift.json").write_text(content)
    with pytest.raises(ValueError, match=r"drift\.json is that of another run"):
        read_run(folder / "corn-seed1")


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": "many"}, {"tests": 5}, {"tests": [5]}, {"not_compared": [1]},
        {"tests": [{**TEST, "alarm": 1}]}, {"tests": [{**TEST, "distance": "far"}]},
        {"tests": [{**TEST, "sentence": None}]}, {"tests": [{**TEST, "p_value": True}]},
    ],
)  # fmt: skip
def test_what_is_something_else_is_refused(wrong: dict) -> None:
    check_drift(DOCUMENT)
    with pytest.raises(ValueError, match=r"drift\.json: "):
        check_drift({**DOCUMENT, **wrong})
