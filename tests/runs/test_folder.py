"""The run folder: whole or not there."""

import hashlib
import io
import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from echelon.runs import (
    OtherFormatError,
    Run,
    RunConfig,
    claim_folder,
    mixture,
    read_run,
    read_runs,
    set_aside,
    write_run,
)
from echelon.runs.folder import FORMAT
from echelon.storage.atomic import sweep

CONFIG = RunConfig(
    "corn",
    "wine.csv",
    seed=3,
    classes=["a", "b"],
    parameters={"backbone_options": {"hidden": (8,)}},
)
RUN = Run(
    config=CONFIG,
    history=[{"epoch": 1, "loss": 0.5}],
    metrics={"mae": 0.25, "log_score": float("inf")},
    predictions={"truth": np.arange(3), "label": np.array(["a", "b", "c"])},
    outcome={"best_epoch": np.int64(1)},
)


def test_round_trip(tmp_path: Path) -> None:
    write_run(tmp_path / "run", RUN)
    found = read_run(tmp_path / "run")
    assert found.config.document() == CONFIG.document()
    assert found.config.name == CONFIG.name
    assert found.history == RUN.history
    assert found.metrics == {"mae": 0.25, "log_score": None}  # JSON has no infinities
    assert found.outcome == {"best_epoch": 1}
    assert found.predictions["label"].tolist() == ["a", "b", "c"]
    assert found.environment["echelon"]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_finished_run_is_never_rewritten(tmp_path: Path) -> None:
    write_run(tmp_path / "run", RUN)
    with pytest.raises(ValueError, match="never rewritten"):
        write_run(tmp_path / "run", RUN)


def test_a_run_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write_run(tmp_path / "run", replace(RUN, metrics={"mae": object()}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["config.json", "metrics.json", "outcome.json", "predictions.npz", "DONE"]
)
def test_damage_is_noticed(tmp_path: Path, name: str) -> None:
    write_run(tmp_path / "run", RUN)
    path = tmp_path / "run" / name
    path.write_bytes(path.read_bytes()[:-2] + b" ")
    with pytest.raises(ValueError, match="is damaged"):
        read_run(tmp_path / "run")


def test_a_changed_digit_is_noticed(tmp_path: Path) -> None:
    write_run(tmp_path / "run", RUN)
    path = tmp_path / "run" / "metrics.json"
    path.write_text(path.read_text().replace("0.25", "0.15"))
    with pytest.raises(ValueError, match=r"metrics\.json is not what was written"):
        read_run(tmp_path / "run")


def test_the_name_tells_configurations_apart_and_nothing_else() -> None:
    assert CONFIG.name == RunConfig.of(CONFIG.document()).name
    assert CONFIG.name.startswith("corn-seed3-")
    changes = [
        {"seed": 4}, {"fingerprint": "x"}, {"threads": 2}, {"parameters": {}}, {"part": "valid"},
        {"split": 1}, {"details": {"test_share": 0.3}}, {"data": "other"},
    ]  # fmt: skip
    names = {replace(CONFIG, **change).name for change in changes}
    assert len(names | {CONFIG.name}) == len(changes) + 1
    odd = replace(CONFIG, method="corn_without_subsets:mask=published / x").name
    assert "/" not in odd
    assert ":" not in odd


def test_unknown_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="has no key 'epochs'"):
        RunConfig.of({**CONFIG.document(), "epochs": 3})
    with pytest.raises(ValueError, match="role must be one of"):
        RunConfig("corn", "wine.csv", role="rival")


def test_what_was_left_behind_is_not_read_and_is_swept(tmp_path: Path) -> None:
    write_run(tmp_path / "run", RUN)
    dead = 2**22 + 1  # above the largest process number
    write_run(tmp_path / f".other.{dead}.partial", RUN)
    write_run(tmp_path / f".mine.{os.getpid()}.partial", RUN)
    (tmp_path / f".shared-abc.{dead}.partial").touch()
    assert len(read_runs(tmp_path)) == 1
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f".mine.{os.getpid()}.partial", "run",
    ]  # fmt: skip


def test_damaged_folders_are_set_aside_and_kept(tmp_path: Path) -> None:
    for number in (1, 2):
        write_run(tmp_path / "run", RUN)
        place = set_aside(tmp_path / "run")
        assert place.name == f".damaged-{number}-run"
        assert (place / "DONE").is_file()
    with pytest.raises(ValueError, match="has no finished run"):
        read_runs(tmp_path)


# ---- folders from anywhere -----------------------------------------------------------------------


def reseal(folder: Path) -> None:
    """Make the checksums those of the files that are there."""
    files = [one for one in folder.iterdir() if one.name != "DONE"]
    sums = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in files}
    (folder / "DONE").write_text(json.dumps(sums))


ARRAYS = {
    "row": np.array([3, 5, 8]), "truth": np.array([0, 1, 1]), "prediction": np.array([0, 0, 1]),
    "probabilities": np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]], dtype=np.float32),
    "crossings": np.zeros(3, dtype=np.float32), "text": np.array(["a", "b", "c"]),
}  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
@pytest.mark.parametrize("name", ["metrics.json", "predictions.npz", "DONE"])
def test_a_pipe_in_a_run_folder_is_not_waited_for(tmp_path: Path, name: str) -> None:
    write_run(tmp_path / "run", RUN)
    (tmp_path / "run" / name).unlink()
    os.mkfifo(tmp_path / "run" / name)
    with pytest.raises(ValueError, match=r"is not a regular file|has no file DONE"):
        read_run(tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("config", []), ("config", {"format": 2, "method": "corn"}), ("config", {"seed": "x"}),
        ("config", {"seed": 1.5}), ("config", {"seed": 10**30}), ("config", {"split": None}),
        ("config", {"split": "0"}), ("config", {"classes": 5}), ("config", {"classes": [[1], {}]}),
        ("config", {"classes": ["a", "b", "c"]}), ("config", {"rows": {"test": "many"}}),
        ("config", {"rows": [1]}), ("config", {"parameters": "x"}), ("config", {"details": 3}),
        ("config", {"method": 7}), ("config", {"data": None}), ("config", {"part": "some"}),
        ("config", {"threads": "two"}), ("config", {"role": ["method"]}),
        ("history", {}), ("history", [1]), ("history", [{"loss": 1}]),
        ("history", [{"epoch": 1, "loss": "low"}]), ("history", [{"epoch": "1"}]),
        ("metrics", []), ("metrics", {"mae": "low"}), ("metrics", {"mae": True}),
        ("metrics", {"mae": 10**400}), ("metrics", None), ("outcome", 3),
        ("outcome", {"coefficients": [1]}), ("outcome", {"coefficients": {"a": "b"}}),
        ("outcome", {"leaderboard": 3}), ("outcome", {"leaderboard": [{"weight": 1.0}]}),
        ("outcome", {"leaderboard": [{"member": "a", "weight": "b"}]}),
        ("outcome", {"leaderboard": [{}]}),
        ("outcome", {"seconds": "long"}), ("environment", "here"),
        ("config", {"format": "x"}), ("config", {"format": True}),
    ],
    ids=lambda value: json.dumps(value)[:40],
)  # fmt: skip
def test_documents_of_wrong_types_are_refused_also_when_sealed(tmp_path, name, document) -> None:
    write_run(tmp_path / "run", replace(RUN, predictions=ARRAYS))
    path = tmp_path / "run" / f"{name}.json"
    if name == "config" and document and document != {"format": 2, "method": "corn"}:
        document = {**json.loads(path.read_text()), **document}
    path.write_text(json.dumps(document))
    reseal(tmp_path / "run")
    with pytest.raises(ValueError, match="is damaged"):
        read_run(tmp_path / "run")


@pytest.mark.parametrize("text", ['{"mae": NaN}', '{"mae": 1e999}', "[" * 100_000, "{}}", "\xff"])
def test_what_is_no_json_is_refused(tmp_path: Path, text: str) -> None:
    write_run(tmp_path / "run", RUN)
    (tmp_path / "run" / "metrics.json").write_text(text, encoding="latin-1")
    reseal(tmp_path / "run")
    with pytest.raises(ValueError, match="is damaged"):
        read_run(tmp_path / "run")


@pytest.mark.parametrize(
    "change",
    [
        {"truth": np.array([0, 1])}, {"truth": np.array(1)}, {"truth": np.array([0, 1, 2])},
        {"truth": np.array([0, -1, 1])}, {"truth": np.array([0.0, 1.0, 1.0])},
        {"prediction": np.array(["a", "b", "c"])}, {"prediction": np.array([0, 1, 9])},
        {"probabilities": np.ones((3, 2, 2))}, {"probabilities": np.array([[0.5, 0.5]] * 2)},
        {"probabilities": np.array([[0.5, 0.25, 0.25]] * 3)}, {"probabilities": np.ones((3, 0))},
        {"probabilities": np.array([[np.nan, 1.0]] * 3)}, {"probabilities": np.ones((3, 2))},
        {"probabilities": np.array([[-1.0, 2.0]] * 3)}, {"crossings": np.array(["a", "b", "c"])},
        {"crossings": np.full(3, np.inf)}, {"row": np.array([-1, 0, 1])}, {"row": np.zeros(3)},
        {"text": np.arange(3)}, {"image": np.arange(3)}, {"image": np.zeros((2, 4, 4))},
        {"conformal_scores": np.array([[1.0]])}, {"conformal_scores": np.array(["x"])},
    ],
    ids=lambda change: f"{next(iter(change))}-{next(iter(change.values())).shape}",
)  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, change: dict) -> None:
    write_run(tmp_path / "whole", replace(RUN, predictions=ARRAYS))
    assert read_run(tmp_path / "whole").predictions["row"].tolist() == [3, 5, 8]
    write_run(tmp_path / "run", replace(RUN, predictions={**ARRAYS, **change}))
    with pytest.raises(ValueError, match="is damaged"):
        read_run(tmp_path / "run")


def test_an_array_that_claims_to_be_huge_takes_no_memory(tmp_path: Path) -> None:
    write_run(tmp_path / "run", RUN)
    stream = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**10,)}
    np.lib.format.write_array_header_1_0(stream, header)
    with zipfile.ZipFile(tmp_path / "run" / "predictions.npz", "w") as opened:
        opened.writestr("truth.npy", stream.getvalue() + b"\0" * 64)
    reseal(tmp_path / "run")
    with pytest.raises(ValueError, match="is not the array that it says"):
        read_run(tmp_path / "run")


def test_mixtures_are_named() -> None:
    assert mixture([CONFIG, replace(CONFIG, seed=4), replace(CONFIG, method="ce")]) is None
    other = {"backbone_options": {"hidden": (9,)}}
    for change, words in (
        ({"seed": 4, "parameters": other}, "corn have parameters.backbone_options.hidden ="),
        ({"method": "ce", "parameters": other}, "corn and of ce have parameters.backbone_options"),
        ({"seed": 4, "data": "beer.csv"}, "data = 'wine.csv' and 'beer.csv'"),
        ({"seed": 4, "classes": ["b", "a"]}, "classes = ['a', 'b'] and ['b', 'a']"),
        ({"seed": 4, "fingerprint": "x"}, "fingerprint = '' and 'x'"),
        ({"seed": 4, "command": "grid"}, "command = 'compare' and 'grid'"),
        ({"threads": 2}, "corn with seed 3 is there twice, with threads = None and 2"),
        ({}, "corn with seed 3 is there twice"),
    ):
        assert words in mixture([CONFIG, replace(CONFIG, **change)])


def test_arrays_that_grow_a_thousandfold_are_refused(tmp_path: Path) -> None:
    """A file of some kilobytes cannot fill the memory."""
    write_run(tmp_path / "run", RUN)
    np.savez_compressed(tmp_path / "run" / "predictions.npz", truth=np.zeros(2**24))
    reseal(tmp_path / "run")
    with pytest.raises(ValueError, match="would take 134,"):
        read_run(tmp_path / "run")


# ---- formats -------------------------------------------------------------------------------------


def renumber(path: Path, number: object) -> None:
    """Make a document one of another format; None for those that had no number yet."""
    document = json.loads(path.read_text())
    assert document.pop("format") == FORMAT
    numbered = {} if number is None else {"format": number}
    path.write_text(json.dumps({**numbered, **document}))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (None, f"was written by an older echelon, in format 1, and this one reads format {FORMAT}"),
        (FORMAT - 1, "was written by an older echelon"),
        (FORMAT + 1, f"was written by a newer echelon, in format {FORMAT + 1}"),
    ],
)
def test_a_run_of_another_format_is_named_as_such(tmp_path: Path, number, words: str) -> None:
    folder = tmp_path / "run"
    write_run(folder, RUN)
    renumber(folder / "config.json", number)
    (folder / "outcome.json").unlink()  # of another format nothing else is known
    reseal(folder)
    for read in (lambda: read_run(folder), lambda: read_runs(tmp_path)):
        with pytest.raises(OtherFormatError, match=words) as caught:
            read()
        assert "damaged" not in str(caught.value)
        assert "make it anew in another folder" in str(caught.value)


def test_a_folder_of_another_format_is_named_as_such(tmp_path: Path) -> None:
    shared = {"data": "wine.csv", "divisions": {"0": "x"}}
    claim_folder(tmp_path, shared)
    claim_folder(tmp_path, {**shared, "divisions": {"1": "y"}})
    with pytest.raises(ValueError, match=r"with data = 'wine\.csv' instead of 'beer\.csv'"):
        claim_folder(tmp_path, {**shared, "data": "beer.csv"})
    renumber(tmp_path / "comparison.json", None)
    with pytest.raises(OtherFormatError, match="was written by an older echelon"):
        claim_folder(tmp_path, shared)
    (tmp_path / "comparison.json").write_text("[]")
    with pytest.raises(ValueError, match="does not say what the runs of the folder share"):
        claim_folder(tmp_path, shared)
    assert [path.name for path in tmp_path.iterdir()] == ["comparison.json"]


def test_the_number_of_the_format_is_no_part_of_a_runs_name(tmp_path: Path) -> None:
    write_run(tmp_path / "run", RUN)
    assert "format" not in read_run(tmp_path / "run").config.document()
    assert read_run(tmp_path / "run").config.name == CONFIG.name


def test_a_network_and_another_model_stand_in_one_comparison() -> None:
    network = RunConfig("corn", "wine.csv", seed=0, parameters={"method": "corn", "recipe": "x"})
    own = RunConfig(
        "corn/tabm", "wine.csv", seed=0,
        parameters={"method": "corn", "recipe": "x", "backbone": "tabm"},
    )  # fmt: skip
    trees = RunConfig("boosting", "wine.csv", seed=0, parameters={"model": "boosting"})
    assert mixture([network, own, trees]) is None
    other = RunConfig("ce", "wine.csv", seed=0, parameters={"method": "ce", "recipe": "y"})
    assert "parameters.recipe = 'x' and 'y'" in mixture([network, trees, other])


def test_the_steps_of_a_history_are_epochs_or_rounds(tmp_path) -> None:
    rounds = [{"round": 1, "ranked_probability_score": 0.5}]
    config = RunConfig("boosting", "wine.csv")
    run = Run(config, rounds, {"mae": 0.0}, {"truth": np.array([0])}, {"trees": 1})
    write_run(tmp_path / "run", run)
    found = read_run(tmp_path / "run")
    assert found.history == rounds
    assert found.environment["date"].endswith("+00:00")
