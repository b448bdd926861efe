"""What explains a run is checked before it is written and before it is shown."""

import copy
import json
from pathlib import Path

import pytest

from echelon.runs import add_explanation, read_run
from echelon.runs.explained import check_explanation
from tests.made_explanations import made_explanation
from tests.made_runs import write_made_runs


@pytest.fixture(scope="module")
def document() -> dict:
    return made_explanation(6, [0, 3])


def test_it_is_added_to_a_finished_run_and_read_with_it(tmp_path: Path, document) -> None:
    run = write_made_runs(tmp_path, rows=50, seeds=2) / "corn-seed0"
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    assert read_run(run).explanation is None
    add_explanation(run, document)
    found = read_run(run).explanation
    assert {name: found[name] for name in document} == document
    add_explanation(run, {**document, "rows": 7})  # it may be explained anew
    assert read_run(run).explanation["rows"] == 7
    for name, content in before.items():
        assert (run / name).read_bytes() == content
    with pytest.raises(ValueError, match="is not a finished run: it has no file DONE"):
        add_explanation(tmp_path, document)


def test_the_explanation_of_another_run_is_refused(tmp_path: Path, document) -> None:
    folder = write_made_runs(tmp_path, rows=50, seeds=2)
    add_explanation(folder / "corn-seed0", document)
    content = (folder / "corn-seed0" / "explanation.json").read_text()
    (folder / "corn-seed1" / "explanation.json").write_text(content)
    with pytest.raises(ValueError, match=r"explanation\.json is that of another run"):
        read_run(folder / "corn-seed1")
    newer = {**json.loads(content), "format": 99}
    (folder / "corn-seed0" / "explanation.json").write_text(json.dumps(newer))
    with pytest.raises(ValueError, match="written by a newer echelon, in format 99"):
        read_run(folder / "corn-seed0")


def places(value, path=()):
    """Every place in a document, with what is there."""
    yield path, value
    inner = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        inner = list(enumerate(value))[:3]
    for key, below in inner:
        yield from places(below, (*path, key))


def test_whatever_is_wrong_in_it_is_a_value_error_or_harmless(document) -> None:
    """Other values at any place are refused with a ValueError, or are of what nothing is shown."""
    check_explanation(document)
    refused = 0
    for path, _ in places(document):
        if not path:
            continue
        for other in ({"a": 1}, [None], "text", float("1e308"), True, None):
            changed = copy.deepcopy(document)
            place = changed
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = other
            try:
                check_explanation(changed)
            except ValueError as error:
                assert "explanation.json" in str(error)  # noqa: PT017
                refused += 1
    assert refused > 300


@pytest.mark.parametrize(
    ("name", "value"), [("importance", []), ("thresholds", []), ("thresholds", [6])]
)
def test_what_could_not_be_drawn_is_refused(document, name: str, value) -> None:
    with pytest.raises(ValueError, match=f"explanation.json: {name}"):
        check_explanation({**document, name: value})


@pytest.mark.parametrize("name", ["classes", "importance", "effects", "reasons", "thresholds"])
def test_what_is_missing_is_named(document, name: str) -> None:
    without = {key: value for key, value in document.items() if key != name}
    with pytest.raises(ValueError, match=f"explanation.json: {name} must be a list; got None"):
        check_explanation(without)
