"""The paper's experiment, made small: data, folders, tables, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from echelon.data import make_reviews
from echelon.experiments import Executor, Search
from echelon.paper.experiments import Experiment
from echelon.paper.results import Result
from echelon.paper.tables import paper_tables
from echelon.paper.tasks import fireman_task, generated_task
from echelon.runs import read_runs
from tests.paper.partitions import write_partition


@pytest.fixture(scope="module")
def partition(tmp_path_factory):
    return write_partition(tmp_path_factory.mktemp("fireman"))


def test_the_settings_are_the_papers_or_the_searched_ones(partition, tmp_path) -> None:
    asked = Experiment(data=partition, methods=["corn", "ce"], seeds=1, max_epochs=1)
    task = asked.task()
    runs = asked.run(tmp_path / "given", executor=Executor(workers=1), tasks=[task])
    described = asked.describe(task, runs)
    assert described["name"] == "recipe paper, published batches"
    assert described["settings"]["corn"] == "0.001, batches of 128, 300 x 300"
    assert described["settings"]["ce"] == "0.0005, batches of 64, 300 x 200"
    search = Search.of(
        {
            "grid": {"settings.learning_rate": [1e-9, 2e-3], "settings.batch_size": [32]},
            "methods": ["corn"], "recipe": "paper", "parameters": {"settings": {"max_epochs": 3}},
        }
    )  # fmt: skip
    searched = Experiment(data=partition, methods=["corn"], seeds=1, search=search)
    runs = searched.run(tmp_path / "searched", executor=Executor(workers=1), tasks=[task])
    assert searched.describe(task, runs)["settings"] == {"corn": "0.002, batches of 32, 300 x 300"}
    assert len(read_runs(tmp_path / "searched" / "search")) == 2


def test_models_that_are_no_networks_take_part_without_settings(partition, tmp_path) -> None:
    asked = Experiment(
        data=partition, recipe="default", methods=["corn", "prank"], seeds=1, max_epochs=1
    )
    task = asked.task()
    runs = asked.run(tmp_path, executor=Executor(workers=1), tasks=[task])
    described = asked.describe(task, runs)
    assert set(described["settings"]) == {"corn"}
    assert set(described["longest_run"]) == {"corn", "prank"}


def test_batches_are_part_of_the_configuration(partition) -> None:
    task = fireman_task(partition)
    names = [
        {one.name for one in Experiment(data=partition, batches=batches).jobs(task)}
        for batches in ("published", "shuffled")
    ]
    assert len(names[0] & names[1]) == 3  # the floor, the constant, the linear model
    assert len(names[0]) == 3 + 6 * 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": "iris"}, "experiments that can be run are fireman, coursera"),
        ({"batches": "sorted"}, "batches must be one of published, shuffled"),
        ({"methods": ["magic"]}, "got magic"),
        ({"seeds": 0}, "seeds must be at least 1"),
    ],
)
def test_wrong_requests(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        Experiment(**options)


def test_the_command_writes_results_and_tables(partition, tmp_path, capsys, monkeypatch) -> None:
    from echelon.cli.main import main

    out = tmp_path / "out"
    command = ["echelon", "reproduce", "fireman", "--data", str(partition), "--out", str(out)]
    command += ["--methods", "corn,corn_without_subsets:mask=published", "--seeds", "2"]
    command += ["--max-epochs", "1", "--workers", "1", "--json"]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit) as caught:
        main()
    assert not caught.value.code
    document = json.loads(capsys.readouterr().out)
    methods = [run["method"] for run in document["runs"]]
    assert methods.count("corn") == 2
    assert methods.count("best possible") == 1
    assert document == json.loads((out / "results.json").read_text())
    text = (out / "tables" / "ablation.md").read_text()
    value = np.mean([run["mae"] for run in document["runs"] if run["method"] == "corn"])
    assert f"{value:.3f}" in text
    keys = [key for key in document if key != "runs"]
    assert not any('"mae":' in json.dumps(document[key]) for key in keys)


def test_generated_data_serve_without_a_download() -> None:
    experiment = Experiment(recipe="default", methods=["corn"], seeds=1)
    task = experiment.task()
    assert task.fingerprint == generated_task().fingerprint
    assert [one.config.parameters.get("settings") for one in experiment.jobs(task)][-1] is None


def test_reviews_of_a_table_are_read_by_the_lstm(tmp_path) -> None:
    reviews = make_reviews(120, seed=1)
    frame = pd.DataFrame({"Review": reviews.texts, "Rating": reviews.ranks + 1})
    frame.to_csv(tmp_path / "hotels.csv", index=False)
    asked = Experiment(
        "tripadvisor", tmp_path / "hotels.csv", recipe="default", methods=["corn"], seeds=1,
        max_epochs=1,
    )  # fmt: skip
    task = asked.task()
    assert (task.columns_by_kind, task.floor) == ({"text": "Review"}, None)
    runs = asked.run(tmp_path / "out", executor=Executor(workers=1), tasks=[task])
    assert {run.config.method for run in runs} == {"constant", "bag of words", "corn"}
    assert asked.describe(task, runs)["settings"]["corn"].endswith("lstm")
    table = paper_tables([Result.of({"experiment": asked.describe(task, runs), "runs": []})])
    assert "TripAdvisor MAE" in table["text"].columns


@pytest.mark.parametrize(("dataset", "kind"), [("coursera", "text"), ("afad", "image")])
def test_texts_and_images_are_generated_without_data(dataset, kind) -> None:
    asked = Experiment(dataset, recipe="default", methods=["corn"], seeds=1)
    task = asked.task()
    assert list(task.columns_by_kind) == [kind]
    assert task.floor.shape == (len(task.test_ranks), 5)
    assert task.fingerprint == asked.task().fingerprint
    (job,) = (one for one in asked.jobs(task) if one.config.role == "method")
    assert job.config.parameters["backbone"] == {"text": "lstm", "image": "resnet"}[kind]
    assert asked.describe(task, [])["dataset"] == {"text": "reviews", "image": "discs"}[kind]


def test_data_that_need_no_file() -> None:
    task = Experiment("digits", recipe="default").task()
    assert task.rows == {"train": 1348, "test": 359, "valid": 90}
    assert task.fingerprint == Experiment("digits", recipe="default").task().fingerprint
    with pytest.raises(ValueError, match="digits needs no data"):
        Experiment("digits", "digits.csv")


def test_a_pretrained_encoder_is_named_without_its_folders() -> None:
    asked = Experiment(
        "coursera", backbone="hf:/some/where/minilm", backbone_options={"frozen": True},
        recipe="default",
    )  # fmt: skip
    assert asked.parameters["backbone_options"] == {"frozen": True}
    described = asked.describe(asked.task(), [])
    assert (described["backbone"], described["name"]) == (
        "minilm",
        "recipe default, minilm, frozen",
    )
    assert "/some" not in json.dumps(described)


# ---- the protocol of the published runs ----------------------------------------------------------


def faces_list(folder: Path, persons: int = 60) -> Path:
    """A published list of MORPH-2, several images a person."""
    rows = 5 * persons
    names = [f"{i // 5:06d}_{i:03d}.jpg" for i in range(rows)]
    frame = pd.DataFrame({"": names, "id_num": np.arange(rows) // 5, "age": np.arange(rows) % 33})
    frame.to_csv(folder / "morph2.csv", index=False)
    return folder / "morph2.csv"


def test_published_subsets_are_those_of_the_paper_with_two_of_them_swapped(tmp_path: Path) -> None:
    given = {"data": faces_list(tmp_path), "images": tmp_path, "methods": ["corn"]}
    paper, published = (
        Experiment("morph2", subsets=subsets, **given).task() for subsets in ("paper", "published")
    )
    assert list(published.test_features["path"]) == list(paper.validation[0]["path"])
    assert list(published.validation[0]["path"]) == list(paper.test_features["path"])
    assert list(published.features["path"]) == list(paper.features["path"])
    assert published.fingerprint != paper.fingerprint
    asked = Experiment("morph2", subsets="published", **given)
    assert asked.describe(published, [])["name"] == "recipe paper, validation and test swapped"


def test_persons_are_kept_apart_where_that_is_asked_for(tmp_path: Path) -> None:
    asked = Experiment("morph2", faces_list(tmp_path), tmp_path, persons=True, methods=["corn"])
    task = asked.task()
    sides = [
        {Path(path).name.split("_")[0] for path in frame["path"]}
        for frame in (task.features, task.test_features, task.validation[0])
    ]
    assert sum(map(len, sides)) == len(set.union(*sides)) == 60
    assert len(task.groups) == len(task.features)


def test_texts_may_have_a_division_for_each_seed(tmp_path: Path) -> None:
    reviews = make_reviews(200, seed=1)
    frame = pd.DataFrame({"Review": reviews.texts, "Rating": reviews.ranks + 1})
    frame.to_csv(tmp_path / "hotels.csv", index=False)
    asked = Experiment(
        "tripadvisor", tmp_path / "hotels.csv", divisions="seeds", methods=["corn", "ce"], seeds=3
    )
    tasks = asked.tasks()
    assert [task.split for task in tasks] == [0, 1, 2]
    assert len({task.fingerprint for task in tasks}) == 3
    jobs = [job.config for job in asked.jobs(tasks) if job.config.role == "method"]
    assert {(config.seed, config.split) for config in jobs} == {(0, 0), (1, 1), (2, 2)}
    assert len(jobs) == 6
    rates = {config.method: config.parameters["settings"] for config in jobs}
    assert rates["corn"] == {"learning_rate": 5e-4, "batch_size": 16}  # TripAdvisor's own
    one = Experiment("tripadvisor", tmp_path / "hotels.csv", methods=["corn"], seeds=3)
    assert len(one.tasks()) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": "aes", "subsets": "published"}, "runs of morph2, afad swap validation and"),
        ({"dataset": "afad", "subsets": "swapped"}, "subsets must be one of paper, published"),
        ({"dataset": "afad", "divisions": "seeds"}, "a division for each seed is made of texts"),
        ({"dataset": "afad", "persons": True}, "known in the data of morph2 only"),
        ({"dataset": "afad", "category": "urban"}, "only aes has categories"),
        ({"dataset": "aes-balanced", "category": "food"}, "only aes has categories"),
    ],
)
def test_what_a_set_does_not_have_is_refused(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        Experiment(**options)


def test_aes_is_run_with_six_methods() -> None:
    assert Experiment("aes").methods == ("ce", "ornn", "coral", "corn", "sord", "cnnpor")
    assert Experiment("retina").methods == Experiment("aes").methods


def test_a_grid_of_the_network_keeps_how_the_images_are_read(tmp_path: Path) -> None:
    grids = Path(__file__).parents[2] / "experiments"
    search = Search.read(grids / "paper-resnet34-grid.toml")
    asked = Experiment("afad", faces_of_afad(tmp_path), tmp_path, search=search)
    assert len(asked.search.jobs(asked.task(), 1)) == 4 * 36
    job = asked.search.jobs(asked.task(), 1)[0]
    assert job.config.parameters["backbone"] == "timm:resnet34"
    assert job.config.parameters["inputs"] == {"image": {"preprocessing": "paper_faces"}}
    words = Search.read(grids / "paper-lstm-grid.toml")
    assert words.grid["settings.learning_rate"] == [1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3]


def faces_of_afad(folder: Path) -> Path:
    rows = [{"path": f"{18 + i % 13}/111/{i}.jpg", "age": i % 13} for i in range(130)]
    pd.DataFrame(rows).to_csv(folder / "afad.csv", index=False)
    return folder / "afad.csv"
