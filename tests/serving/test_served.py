"""A served model and its file: picked up whole or not at all."""

import os
import shutil

import numpy as np

import echelon
from echelon.serving.bodies import ReceivedRows
from echelon.serving.refusal import Refusal
from echelon.serving.served import ModelFile, ServedModel


def received(frame) -> ReceivedRows:
    return ReceivedRows({name: frame[name].to_numpy(dtype=object) for name in frame})


def test_one_that_is_wrong_has_no_part_in_what_the_others_get(fitted, table) -> None:
    model = ServedModel(fitted)
    rows = table.drop(columns="grade").head(3)
    bodies = [received(rows.iloc[:1]), received(rows.iloc[1:2].assign(a="x")), received(rows[2:])]
    first, wrong, last = model.predict_each(bodies)
    assert isinstance(wrong, Refusal)
    expected = fitted.predict_proba(rows)
    np.testing.assert_allclose(first.probabilities, expected[:1], atol=1e-6)
    np.testing.assert_allclose(last.probabilities, expected[2:], atol=1e-6)


def test_a_replaced_file_is_picked_up_whole_or_not_at_all(
    fitted, model_path, table, tmp_path
) -> None:
    path = tmp_path / "m"
    shutil.copy(model_path, path)
    said: list[str] = []
    file = ModelFile(path, 0.9, said.append)
    first = file.current
    assert not file.look()
    content = model_path.read_bytes()
    for damaged in (content[: len(content) // 2], b"", content[:-1] + b"x"):
        path.write_bytes(damaged)
        assert not file.look()
        assert file.current is first
    assert (file.failures, len(said)) == (3, 3)
    assert "the one before goes on serving" in said[0]
    os.unlink(path)
    assert not file.look()
    other = echelon.OrdinalBoosting(rounds=3, classes=["low", "mid", "high"], random_state=0)
    other.fit(table[["a", "b"]], table["grade"]).save(path)
    assert file.look()
    assert file.current.fingerprint != first.fingerprint
    assert [column.name for column in file.current.schema.columns] == ["a", "b"]
    assert not file.look()


def test_the_fingerprint_is_that_of_the_model_and_not_of_its_file(fitted, model_path) -> None:
    assert ServedModel(fitted).fingerprint == ServedModel(echelon.load(model_path)).fingerprint
