"""Grids: every combination, chosen on the validation part alone, and the file that says it."""

from pathlib import Path

import numpy as np
import pytest

from echelon.experiments import (
    Executor,
    Search,
    comparison_jobs,
    estimate_seconds,
    search_grid,
    table_task,
)
from echelon.experiments.searching import choose, final_jobs, with_validation
from echelon.runs import Run, RunConfig, read_runs

HERE = Executor(workers=1)
PAPER_GRID = Path(__file__).parents[2] / "experiments" / "paper-mlp-grid.toml"


@pytest.fixture(scope="module")
def task(small_frame):
    whole = table_task("small", small_frame.drop(columns="rating"), small_frame["rating"])
    return with_validation(whole, 0.2)


def test_the_papers_grid_in_under_30_lines(task) -> None:
    assert len(PAPER_GRID.read_text().splitlines()) < 30
    search = Search.read(PAPER_GRID)
    combinations = search.combinations(task)
    assert len(combinations) == 6 * 6 * 20
    assert len({repr(one) for one in combinations}) == 720
    assert combinations[0] == {
        "recipe": "paper", "settings": {"learning_rate": 1e-5, "batch_size": 16},
        "backbone_options": {"hidden": [50]},
    }  # fmt: skip
    assert len(search.jobs(task)) == 4 * 720


def test_the_best_on_the_validation_part_is_chosen_and_tested(task, tmp_path) -> None:
    search = Search.of(
        {
            "grid": {
                "settings.learning_rate": [1e-9, 1e-2],
                "backbone_options.hidden": [[16], [8, 8]],
            },
            "methods": ["corn", "ce"],
            "metric": "ranked_probability_score",
            "parameters": {"settings": {"max_epochs": 20}, "device": "cpu"},
        }
    )
    choices = search_grid(task, search, tmp_path, executor=HERE)
    assert [one.method for one in choices] == ["corn", "ce"]
    for one in choices:
        assert one.parameters["settings"]["learning_rate"] == 1e-2  # the other cannot learn
        assert one.tried == 4
        own = [run for run in read_runs(tmp_path) if run.config.method == one.method]
        assert one.score == min(run.metrics["ranked_probability_score"] for run in own)
    runs = read_runs(tmp_path)
    assert len(runs) == 8
    for run in runs:
        assert run.config.part == "valid"
        np.testing.assert_array_equal(run.predictions["truth"], task.validation[1])
    jobs = final_jobs(task, choices, 2, command="grid")
    assert [one.config.part for one in jobs] == ["test"] * 4
    assert jobs[0].config.parameters["settings"] == {"max_epochs": 20, "learning_rate": 1e-2}


def test_a_metric_that_is_better_when_higher() -> None:
    def run(rate: float, seed: int, accuracy: float) -> Run:
        config = RunConfig("ce", "x", seed=seed, parameters={"learning_rate": rate})
        return Run(config, [], {"accuracy": accuracy}, {})

    runs = [run(0.1, 0, 0.5), run(0.1, 1, 0.7), run(0.2, 0, 0.65), run(0.2, 1, 0.5)]
    (found,) = choose(runs, "accuracy")
    assert (found.parameters["learning_rate"], found.score) == (0.1, pytest.approx(0.6))


def test_validation_rows_are_cut_from_the_training_rows_once(small_frame, task) -> None:
    whole = table_task("small", small_frame.drop(columns="rating"), small_frame["rating"])
    assert len(task.ranks) + len(task.validation[1]) == len(whole.ranks)
    np.testing.assert_array_equal(task.test_ranks, whole.test_ranks)
    assert with_validation(task, 0.5) is task


def test_the_estimate_grows_with_the_work(task) -> None:
    def seconds(epochs: int) -> float:
        search = Search.of(
            {"grid": {"settings.batch_size": [8, 64]}, "methods": ["ce"],
             "parameters": {"settings": {"max_epochs": epochs}, "device": "cpu"}}
        )  # fmt: skip
        return estimate_seconds(search.jobs(task))

    assert 0 < seconds(2) < seconds(2000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("methods = ['ce']", "needs a table .grid."),
        ("epochs = 3\n[grid]\nsettings.batch_size = [1]", "unknown key 'epochs'"),
        ("[grid]\nspeed = [1]", "names 'speed', which is no parameter"),
        ("[grid]\nbackbone_options = [1]", "write a dot"),
        ("[grid]\nsettings.batch_size = 3", "must be a list of values"),
        ("[grid]\nsettings.batch_size = []", "must be a list of values"),
        ("methods = ['magic']\n[grid]\nsettings.batch_size = [1]", "got magic"),
        ("methods = 'ce'\n[grid]\nsettings.batch_size = [1]", "must be a list of names"),
        ("metric = 'speed'\n[grid]\nsettings.batch_size = [1]", "metric must be one of"),
        ("[grid", "is not a readable TOML file"),
        ("grid = 3", "grid must be a table"),
        ("parameters = 3\n[grid]\nsettings.batch_size = [1]", "parameters must be a table"),
        ("methods = [3]\n[grid]\nsettings.batch_size = [1]", "methods must be a list of names"),
        (
            "methods = [['ce']]\n[grid]\nsettings.batch_size = [1]",
            "methods must be a list of names",
        ),
        ("classes = 'a,b'\n[grid]\nsettings.batch_size = [1]", "classes must be a list of names"),
        ("drop = [1]\n[grid]\nsettings.batch_size = [1]", "drop must be a list of names"),
        ("data = 3\n[grid]\nsettings.batch_size = [1]", "data must be a text"),
        ("target = ['a']\n[grid]\nsettings.batch_size = [1]", "target must be a text"),
        ("metric = 3\n[grid]\nsettings.batch_size = [1]", "metric must be a text"),
        ("metric = ['mae']\n[grid]\nsettings.batch_size = [1]", "metric must be a text"),
        ("recipe = true\n[grid]\nsettings.batch_size = [1]", "recipe must be a text"),
        ("seeds = '3'\n[grid]\nsettings.batch_size = [1]", "seeds must be an integer"),
        ("seeds = true\n[grid]\nsettings.batch_size = [1]", "seeds must be an integer"),
        ("test_seeds = 1.5\n[grid]\nsettings.batch_size = [1]", "test_seeds must be an integer"),
        ("test_seeds = 999999999\n[grid]\nsettings.batch_size = [1]", "at most 10,000"),
        (
            "test_share = 'half'\n[grid]\nsettings.batch_size = [1]",
            "test_share must be a number between",
        ),
        (
            "validation_share = 1\n[grid]\nsettings.batch_size = [1]",
            "validation_share must be a number",
        ),
        (
            "[grid]\nsettings.batch_size = [1979-05-27]",
            "grid.settings.batch_size must be texts, finite numbers",
        ),
        (
            "[grid]\nsettings.learning_rate = [nan]",
            "grid.settings.learning_rate must be texts, finite numbers",
        ),
        ("[grid]\nrandom_state = [1]", "names 'random_state'"),
        ("[grid]\nlearning_rate = [0.1]", "names 'learning_rate'.*write a dot: settings.learning"),
        ("[grid.settings]", "names 'settings'"),
        (
            "[grid]\nsettings.batch_size = [1]\n[parameters]\nsettings = 3",
            "settings must be a table",
        ),
        ("[grid]\nsettings.batch_size = [1]\n[parameters]\nspeed = 3", "parameters.speed is none"),
        (
            "[grid]\nsettings.batch_size = [1]\n[parameters]\nclasses = [1]",
            "parameters.classes is none",
        ),
        (
            "[grid]\n"
            + "\n".join(
                f"settings.{name} = [{', '.join(['1'] * 100)}]"
                for name in ("batch_size", "patience", "max_epochs")
            ),
            "the grid has 4,000,000 runs",
        ),
    ],
)
def test_wrong_files(tmp_path, text, message) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        Search.read(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("settings.learning_rate", "fast"), ("settings.learning_rate", True),
        ("settings.batch_size", 1.5), ("settings.batch_size", [8]), ("settings.max_epochs", "many"),
        ("settings.weight_decay", "x"), ("settings.patience", "x"),
        ("settings.average", "x"), ("settings.clip_norm", "x"), ("settings.refit", "yes"),
        ("settings.warm_up", [1]), ("settings.schedule", 3), ("settings.scaling", [1]),
        ("settings.metric", "speed"), ("settings.metric", [1]), ("device", "tpu"),
        ("device", 3), ("recipe", "magic"),
    ],
)  # fmt: skip
def test_values_of_wrong_types_are_refused_before_any_run(task, tmp_path, name, value) -> None:
    search = Search.of({"grid": {name: [value]}, "methods": ["ce"]})
    for attempt in (
        lambda: estimate_seconds(search.jobs(task)),
        lambda: search_grid(task, search, tmp_path / "search", executor=Executor(workers=1)),
    ):
        with pytest.raises(ValueError, match=name.rpartition(".")[2]):
            attempt()
    assert not (tmp_path / "search").exists()


@pytest.mark.parametrize(
    "text",
    [
        '[grid]\n"settings.patience" = [1, 2]\n"inputs.text.max_tokens" = [8]',
        "[grid]\nsettings.patience = [1, 2]\ninputs.text.max_tokens = [8]",
        "[grid.settings]\npatience = [1, 2]\n[grid.inputs.text]\nmax_tokens = [8]",
    ],
)
def test_a_dot_may_stand_with_quotes_without_them_or_as_a_table(task, tmp_path, text) -> None:
    (tmp_path / "grid.toml").write_text(text)
    search = Search.read(tmp_path / "grid.toml")
    assert search.grid == {"settings.patience": [1, 2], "inputs.text.max_tokens": [8]}
    assert [one["settings"] for one in search.combinations(task)] == [
        {"patience": 1}, {"patience": 2},
    ]  # fmt: skip


def test_models_that_have_no_steps_take_their_limit_or_what_a_fit_takes(task) -> None:
    jobs = comparison_jobs([task], ["boosting:rounds=5", "auto:time_limit=40"], 2, parameters={})
    assert 80 < estimate_seconds(jobs) < 100
