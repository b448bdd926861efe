"""The paper's experiment, made small: data, folders, tables, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest

from echelon.data import make_reviews
from echelon.experiments import Executor, Search
from echelon.paper.experiments import Experiment
from echelon.paper.tables import Result, paper_tables
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
