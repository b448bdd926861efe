"""The commands on tables with texts and images."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import echelon
from echelon.cli.main import app
from echelon.cli.reading import DataDescription
from echelon.experiments import Search
from echelon.paper.experiments import Experiment
from echelon.runs import read_run, read_runs
from tests.media import mixed_table

QUICK = ("--max-epochs", "1", "--device", "cpu", "--json")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    images = tmp_path / "images"
    images.mkdir()
    frame, ranks = mixed_table(50, images)
    frame["photo"] = "images/" + frame["photo"]  # beside the table
    frame.assign(stars=ranks + 1).to_csv(tmp_path / "table.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> dict:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output + repr(result.exception)
    return json.loads(result.stdout)


MEDIA = ("--target", "stars", "--text", "review", "--image", "photo")


def test_a_mixed_table(folder: Path) -> None:
    fitted = run("fit", "table.csv", *MEDIA, "--conformal", "0.2", "--out", "m", *QUICK)
    assert fitted["skipped"] == 0
    assert echelon.load("m").spec_.backbones == {
        "table": "mlp", "text": "lstm", "image": "resnet",
    }  # fmt: skip
    scores = run("evaluate", "m", "table.csv", "--target", "stars", "--out", "run", "--json")
    assert 0 <= scores["metrics"]["mae"] <= 3
    assert read_run("run").predictions["probabilities"].shape == (50, 4)
    assert run("predict", "m", "table.csv", "--out", "p.csv", "--json")["rows"] == 50
    expected = pd.read_csv("p.csv")
    (folder / "elsewhere").mkdir()
    moved = pd.read_csv("table.csv")
    moved["photo"] = moved["photo"].str.removeprefix("images/")
    moved.to_csv("elsewhere/new.csv", index=False)
    asked = ("predict", "m", "elsewhere/new.csv", "--out", "q.csv", "--json")
    run(*asked, "--image-folder", "images")
    pd.testing.assert_frame_equal(pd.read_csv("q.csv"), expected)


def test_methods_are_compared_on_texts_and_images(folder: Path) -> None:
    asked = ("compare", "table.csv", "--methods", "ce,corn", "--seeds", "1", "--workers", "1")
    document = run(*asked, *MEDIA, "--out", "runs", *QUICK)
    methods = {one["method"] for one in document["runs"]}
    assert methods == {"constant", "cumulative link", "bag of words", "ce", "corn"}
    runs = read_runs("runs")
    assert all(one.predictions["text"].dtype.kind == "U" for one in runs)
    assert Path(str(runs[0].predictions["image"][0])).is_file()
    page = run("report", "runs", "--json")["page"]
    assert "data:image/jpeg;base64," in Path(page).read_text()
    (linear,) = (one for one in runs if one.config.method == "cumulative link")
    assert not {"review", "photo"} & {name.split()[0] for name in linear.outcome["coefficients"]}
    only = pd.read_csv("table.csv")[["review", "stars"]]
    only.to_csv("reviews.csv", index=False)
    asked = ("compare", "reviews.csv", "--methods", "corn", "--seeds", "1", "--workers", "1")
    document = run(*asked, "--target", "stars", "--text", "review", "--out", "texts", *QUICK)
    assert {one["method"] for one in document["runs"]} == {"constant", "bag of words", "corn"}


def test_broken_images(folder: Path) -> None:
    (folder / "images" / "5.png").write_bytes(b"no image")
    asked = ("fit", "table.csv", "--target", "stars", "--image", "photo", "--drop", "review",
             "--out", "m", *QUICK)  # fmt: skip
    result = CliRunner().invoke(app, asked)
    assert isinstance(result.exception, ValueError)
    assert "5.png cannot be read" in str(result.exception)
    fitted = run(*asked, "--on-broken", "skip")
    assert (fitted["skipped"], fitted["rows"]) == (1, 49)
    skip = ("--on-broken", "skip", "--json")
    assert run("evaluate", "m", "table.csv", "--target", "stars", *skip)["rows"] == 49
    found = run("predict", "m", "table.csv", "--out", "p.csv", *skip)
    assert (found["rows"], found["skipped"]) == (50, 1)
    predictions = pd.read_csv("p.csv")
    assert np.flatnonzero(predictions["prediction"].isna()).tolist() == [5]
    assert Path("p.csv").read_text().splitlines()[1].split(",")[0] in "1234"  # not 3.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--text", "revew"), "has no column 'revew'"),
        (("--text", "review", "--drop", "review"), "cannot be both"),
        (("--backbone", "lstm"), "needs a column of texts"),
        (
            ("--text", "review", "--backbone", "lstm", "--frozen"),
            "hf:NAME or timm:NAME; got 'lstm'",
        ),
        (("--image", "photo", "--image-folder", "none"), "no folder of images none"),
        (("--image", "photo", "--on-broken", "maybe"), "must be raise or skip"),
    ],
)
def test_what_is_refused(folder: Path, arguments, message: str) -> None:
    asked = ("fit", "table.csv", "--target", "stars", "--out", "m", *QUICK, *arguments)
    result = CliRunner().invoke(app, asked)
    assert isinstance(result.exception, ValueError)
    assert message in str(result.exception)


def test_a_folder_of_class_folders(folder: Path) -> None:
    frame = pd.read_csv("table.csv")
    for path, stars in zip(frame["photo"], frame["stars"], strict=True):
        place = folder / "sorted" / ("low" if stars < 3 else "high")
        place.mkdir(parents=True, exist_ok=True)
        (folder / path).rename(place / Path(path).name)
    # that the folder holds images need not be said
    asked = ("fit", "sorted", "--target", "class", "--out", "m", *QUICK)
    result = CliRunner().invoke(app, asked)
    assert "high" in str(result.exception)
    assert "--classes" in str(result.exception) or "classes" in str(result.exception)
    fitted = run(*asked, "--classes", "low,high")
    assert echelon.load("m").image_column == "image"
    assert (fitted["rows"], fitted["classes"]) == (50, ["low", "high"])
    assert run("evaluate", "m", "sorted", "--target", "class", "--json")["rows"] == 50
    (folder / "sorted" / "high" / "broken.png").write_bytes(b"")
    asked = ("predict", "m", "sorted", "--out", "p.csv", "--on-broken", "skip", "--json")
    assert (run(*asked)["rows"], run(*asked)["skipped"]) == (51, 1)
    found = pd.read_csv("p.csv").set_index("image")
    assert found.index.tolist() == sorted(found.index)
    assert found.index[found["prediction"].isna()].tolist() == ["high/broken.png"]


def test_a_model_without_images_refuses_a_folder_of_them(folder: Path) -> None:
    run("fit", "table.csv", "--target", "stars", "--drop", "review,photo", "--out", "m", *QUICK)
    for command in (("predict", "--out", "p.csv"), ("evaluate", "--target", "class")):
        result = CliRunner().invoke(app, [command[0], "m", str(folder), *command[1:]])
        assert isinstance(result.exception, ValueError)
        assert "m was fitted without images, and" in str(result.exception)


def test_a_grid_on_texts(folder: Path) -> None:
    Path("grid.toml").write_text(
        'data = "table.csv"\ntarget = "stars"\ntext = "review"\nbackbone = "lstm"\n'
        'drop = ["photo"]\nmethods = ["corn"]\ntest_seeds = 1\nrecipe = "paper"\n'
        "[parameters.settings]\nmax_epochs = 1\n[grid]\nsettings.learning_rate = [0.001, 0.01]\n"
        '"inputs.text.max_tokens" = [8]\n'
    )
    found = run("grid", "grid.toml", "--out", "runs", "--workers", "1", "--json")
    (choice,) = found["choices"]
    assert choice["tried"] == 2
    assert choice["parameters"]["inputs"] == {"text": {"max_tokens": 8}}
    assert {run["method"] for run in found["runs"]} == {
        "corn", "constant", "cumulative link", "bag of words",
    }  # fmt: skip


def test_rows_of_one_name_keep_their_predictions_apart(folder: Path) -> None:
    frame = pd.read_csv("table.csv").drop(columns=["review", "size", "kind"])
    run("fit", "table.csv", "--target", "stars", "--image", "photo", "--drop",
        "review,size,kind", "--out", "m", *QUICK)  # fmt: skip
    frame["photo"] = [str(folder / one) for one in frame["photo"]]
    frame.loc[0, "photo"] = "none.png"
    frame.head(3).set_axis([0, 0, 1]).to_parquet("new.parquet")
    run("predict", "m", "new.parquet", "--out", "p.csv", "--on-broken", "skip", "--json")
    assert pd.read_csv("p.csv")["prediction"].isna().tolist() == [True, False, False]
    frame.head(1).to_csv("one.csv", index=False)  # nothing to predict at all
    found = run("predict", "m", "one.csv", "--out", "p.csv", "--on-broken", "skip", "--json")
    assert (found["rows"], found["skipped"]) == (1, 1)
    empty = pd.read_csv("p.csv", skip_blank_lines=False)
    assert empty.columns[0] == "prediction"
    assert len(empty) == 1
    for command in (("predict", "--out", "p.csv"), ("evaluate", "--target", "stars")):
        asked = (command[0], "m", "table.csv", *command[1:], "--on-broken", "skip")
        pd.read_csv("table.csv").drop(columns="photo").to_csv("without.csv", index=False)
        result = CliRunner().invoke(app, [*asked[:2], "without.csv", *asked[3:]])
        assert "lacks the column 'photo'" in str(result.exception)


def test_texts_stay_as_they_stand_in_the_file(folder: Path) -> None:
    codes = {"text": ["007", "None", "", "NA", "5"] * 8, "stars": [1, 2, 3, 1, 2] * 8}
    pd.DataFrame({**codes, "number": range(40)}).to_csv("codes.csv", index=False)
    run("fit", "codes.csv", "--target", "stars", "--text", "text", "--out", "m", *QUICK)
    words = echelon.load("m").readers_.encodings["text"].words
    assert sorted(words) == ["007", "5", "na", "none"]
    new = pd.DataFrame({"text": ["007", "5"], "number": [1, 2]})
    new.to_csv("new.csv", index=False)
    run("predict", "m", "new.csv", "--out", "p.csv", "--json")
    expected = echelon.load("m").predict_proba(new)
    np.testing.assert_allclose(pd.read_csv("p.csv").iloc[:, 1:-1], expected, rtol=1e-4)


def test_a_search_for_the_settings_of_reviews_reads_them_as_texts(folder: Path) -> None:
    search = Search.of({"grid": {"settings.learning_rate": [0.01]}, "methods": ["corn"]})
    asked = Experiment("reviews", recipe="default", methods=["corn"], search=search)
    (job,) = asked.search.jobs(asked.task())
    assert job.config.parameters["text"] == "review"
    assert job.config.parameters["backbone"] == "lstm"


def test_a_file_of_medmnist_is_fitted_evaluated_and_predicted(folder: Path) -> None:
    arrays = {}
    for subset, rows in {"train": 40, "val": 10, "test": 12}.items():
        ranks = np.arange(rows) % 3
        images = np.repeat(80 * ranks, 64).reshape(rows, 8, 8) + np.arange(8)
        arrays |= {f"{subset}_images": images.astype(np.uint8)}
        arrays |= {f"{subset}_labels": ranks.astype(np.uint8).reshape(-1, 1)}
    np.savez("grades.npz", **arrays)
    asked = ("grades.npz", "--target", "class")
    fitted = run("fit", *asked, "--sheet", "train", "--method", "corn", "--out", "m", *QUICK)
    assert (fitted["rows"], fitted["classes"]) == (40, [0, 1, 2])
    assert run("evaluate", "m", *asked, "--sheet", "test", "--json")["rows"] == 12
    assert run("predict", "m", "grades.npz", "--out", "p.csv", "--json")["rows"] == 62
    refused = CliRunner().invoke(
        app, ["fit", *asked, "--group-pattern", "a", "--out", "n", "--max-epochs", "1"]
    )
    assert "out of the names of images, and there is no column of paths" in str(refused.exception)


def test_a_pattern_takes_groups_out_of_the_names_of_images(folder: Path) -> None:
    described = DataDescription(Path("table.csv"), "stars", image="photo", group_pattern=r"^(\d)")
    rows = described.labelled(described.table())
    assert rows.groups.tolist() == [str(i)[0] for i in range(50)]
    *_, rest = rows.held_out([0.3], 0, described.columns_by_kind)
    assert not set(rows.groups[rest]) & set(rows.groups[~rest])  # no group on both sides
    both = replace(described, group="kind")
    with pytest.raises(ValueError, match="a row has one group: give --group kind or"):
        both.labelled(both.table())
