"""Comparisons of methods: baselines unasked, runs kept, nothing shared between train and test."""

import json
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Barrier, Thread

import numpy as np
import pandas as pd
import pytest

from echelon.data import make_friedman
from echelon.experiments import Executor, compare_methods, comparison_jobs, table_task
from echelon.experiments.jobs import baseline_jobs, job
from echelon.experiments.searching import with_validation
from echelon.runs import read_runs
from tests.made_runs import write_made_runs
from tests.media import mixed_table

QUICK = {"max_epochs": 1, "device": "cpu"}
HERE = Executor(workers=1)


class Nobody(Executor):
    """Takes jobs and does none of them."""

    def run(self, jobs, folder, *, on_run=None):
        return []


pytestmark = pytest.mark.usefixtures("few_steps")


def task(**options):
    data = make_friedman(300, num_classes=3, seed=2)
    frame = pd.DataFrame(data.features, columns=[f"V{i}" for i in range(10)])
    frame["kind"] = np.where(frame["V3"] > 0.5, "big", "small")
    labels = np.array(["low", "mid", "top"])[data.ranks]
    return table_task("made up", frame, labels, classes=["low", "mid", "top"], **options)


def test_methods_by_seeds_with_baselines(tmp_path: Path) -> None:
    runs = compare_methods(
        task(), ["corn", "ce"], 2, tmp_path / "runs", parameters=QUICK, executor=HERE
    )
    places = [place for place in (tmp_path / "runs").iterdir() if place.is_dir()]
    names = sorted(place.name.rpartition("-")[0] for place in places)
    assert names == [
        "ce-seed0", "ce-seed1", "constant", "corn-seed0", "corn-seed1", "cumulative-link",
    ]  # fmt: skip
    assert len(runs) == len(read_runs(tmp_path / "runs")) == 6
    by_name = {run.config.method: run for run in runs}
    coefficients = by_name["cumulative link"].outcome["coefficients"]
    assert {"V0", "V3", "kind = big"} <= set(coefficients)
    assert coefficients["V3"] > abs(coefficients["V9"])  # V3 raises the response, V9 is noise
    constant = by_name["constant"].predictions
    assert len(np.unique(constant["prediction"])) == 1
    assert by_name["cumulative link"].metrics["mae"] < by_name["constant"].metrics["mae"]
    assert {run.config.role for run in runs} == {"method", "baseline"}


def test_finished_runs_are_kept_and_others_refused(tmp_path: Path) -> None:
    (first,) = (
        run
        for run in compare_methods(task(), ["ce"], 1, tmp_path, parameters=QUICK, executor=HERE)
        if run.config.method == "ce"
    )
    done = tmp_path / first.config.name / "DONE"
    stamp = done.stat().st_mtime_ns
    seen = []
    compare_methods(
        task(), ["ce"], 2, tmp_path, parameters=QUICK, executor=HERE,
        on_run=lambda name, is_new: seen.append((name, is_new)),
    )  # fmt: skip
    assert done.stat().st_mtime_ns == stamp
    assert [is_new for _, is_new in seen] == [False] * 3 + [True]  # the second seed
    with pytest.raises(ValueError, match="holds runs on other rows"):
        compare_methods(task(test_share=0.5), ["ce"], 1, tmp_path, parameters=QUICK, executor=HERE)
    other = {**QUICK, "max_epochs": 2}
    with pytest.raises(ValueError, match="finished run of ce with parameters"):
        compare_methods(task(), ["ce"], 1, tmp_path, parameters=other, executor=HERE)


def test_finished_runs_of_an_older_echelon_stay_where_they_are(tmp_path: Path) -> None:
    folder = write_made_runs(tmp_path / "runs", rows=20, seeds=1) / "corn-seed0"
    config = json.loads((folder / "config.json").read_text())
    del config["format"]
    (folder / "config.json").write_text(json.dumps(config))
    sums = json.loads((folder / "DONE").read_text())
    sums["config.json"] = sha256((folder / "config.json").read_bytes()).hexdigest()
    (folder / "DONE").write_text(json.dumps(sums))
    before = sorted(path.name for path in folder.parent.iterdir())
    with pytest.raises(ValueError, match=r"corn-seed0 was written by an older echelon, in format"):
        compare_methods(task(), ["ce"], 1, folder.parent, parameters=QUICK, executor=HERE)
    jobs = comparison_jobs([task()], ["ce"], 1, parameters=QUICK)
    folder.rename(folder.with_name(jobs[0].name))
    with pytest.raises(ValueError, match="was written by an older echelon"):
        HERE.run(jobs[:1], folder.parent)
    folder.with_name(jobs[0].name).rename(folder)
    assert sorted(path.name for path in folder.parent.iterdir()) == before


def test_a_folder_belongs_to_one_comparison(tmp_path: Path) -> None:
    """Also where nothing has finished yet that could be looked at."""
    asked = partial(compare_methods, parameters=QUICK, executor=Nobody())
    asked(task(), ["ce"], 1, tmp_path)
    asked(task(), ["corn", "sord:temperature=2"], 2, tmp_path)  # methods and seeds may be added
    asked([task(split_seed=n) for n in range(2)], ["ce"], 1, tmp_path)  # and divisions
    with pytest.raises(
        ValueError, match=r"parameters\.max_epochs = 1 instead of 2; choose another"
    ):
        compare_methods(
            task(), ["rps"], 1, tmp_path, parameters={**QUICK, "max_epochs": 2}, executor=Nobody()
        )
    with pytest.raises(ValueError, match=r"divisions\.0 = .* instead of"):
        asked(task(test_share=0.5), ["rps"], 1, tmp_path)
    with pytest.raises(ValueError, match="threads = 1 instead of 2"):
        asked(task(), ["rps"], 1, tmp_path, threads=2)
    (tmp_path / "comparison.json").write_text("{")
    with pytest.raises(ValueError, match="does not say what the runs of the folder share"):
        asked(task(), ["ce"], 1, tmp_path)


def test_of_two_comparisons_that_start_at_once_one_is_refused(tmp_path: Path) -> None:
    found = task()
    start = Barrier(8)
    outcomes: list[str] = []
    refused: list[str] = []

    def begin(epochs: int) -> None:
        start.wait()
        try:
            compare_methods(
                found, ["ce"], 1, tmp_path, parameters={**QUICK, "max_epochs": epochs},
                executor=Nobody(),
            )  # fmt: skip
            outcomes.append(str(epochs))
        except ValueError as error:
            refused.append(str(error))

    threads = [Thread(target=begin, args=(1 + i % 4,)) for i in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(outcomes) == 2
    assert all("max_epochs" in message for message in refused)
    assert len(set(outcomes)) == 1


def test_scored_rows_can_be_found_in_the_source(tmp_path: Path) -> None:
    data = make_friedman(120, num_classes=3, seed=2)
    frame = pd.DataFrame(data.features, columns=[f"V{i}" for i in range(10)])
    made = table_task("made up", frame, data.ranks)
    cut = with_validation(made, 0.2)
    for one, part in ((made, "test"), (cut, "valid")):
        done = job(one, "constant", command="compare", role="baseline", parameters={}, part=part)
        arrays = done.run().predictions
        np.testing.assert_array_equal(data.ranks[arrays["row"]], arrays["truth"])
    assert set(cut.numbers["train"]) | set(cut.numbers["valid"]) == set(made.numbers["train"])
    pd.testing.assert_frame_equal(
        frame.iloc[cut.numbers["valid"]].reset_index(drop=True), cut.validation[0]
    )


def test_counts_that_nobody_can_run_are_refused(tmp_path: Path) -> None:
    for seeds in (10**20, 10_001):
        with pytest.raises(ValueError, match="seeds must be at least 1 and at most 10,000"):
            compare_methods(task(), ["ce"], seeds, tmp_path)
    with pytest.raises(ValueError, match="threads must be at least 1 and at most 1,024"):
        compare_methods(task(), ["ce"], 1, tmp_path, threads=10**9)
    with pytest.raises(ValueError, match="max_epochs must be at most"):
        compare_methods(task(), ["ce"], 1, tmp_path, parameters={"max_epochs": 10**20})


def test_settings_are_looked_at_before_anything_runs(tmp_path: Path) -> None:
    for wrong, message in (
        ({"device": "tpu"}, "device must be auto, cpu"),
        ({"recipe": "magic"}, "recipe must be one of"),
        ({"learning_rate": "fast"}, "learning_rate must be a number"),
    ):
        with pytest.raises(ValueError, match=message):
            compare_methods(task(), ["ce"], 1, tmp_path / "runs", parameters=wrong)
    assert not (tmp_path / "runs").exists()


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


def test_several_divisions_differ_and_are_told_apart(tmp_path: Path) -> None:
    tasks = [task(split_seed=number) for number in range(2)]
    runs = compare_methods(tasks, ["ce"], 1, tmp_path, parameters=QUICK, executor=HERE)
    assert len(runs) == 6
    assert {run.config.split for run in runs} == {0, 1}
    assert len({run.config.fingerprint for run in runs}) == 2


def test_groups_stay_on_one_side() -> None:
    groups = np.arange(300) // 3
    found = task(groups=groups)
    assert len(found.ranks) + len(found.test_ranks) == 300
    assert set(found.groups) == {g for g in set(groups) if (found.groups == g).sum() == 3}


@pytest.mark.parametrize(
    ("methods", "seeds", "message"),
    [(["magic"], 1, "got magic"), ([], 1, "got none"), (["ce"], 0, "seeds must be at least 1")],
)
def test_wrong_requests(tmp_path, methods, seeds, message) -> None:
    with pytest.raises(ValueError, match=message):
        compare_methods(task(), methods, seeds, tmp_path)


def test_texts_have_a_bag_of_words_beside_them(tmp_path: Path) -> None:
    frame, ranks = mixed_table(80)  # whose texts name the class
    made = table_task("reviews", frame[["size", "review"]], ranks, text="review")
    asked = {**QUICK, "text": "review", "backbone": "lstm"}
    runs = compare_methods(made, ["ce"], 1, tmp_path, parameters=asked, executor=HERE)
    by_name = {run.config.method: run for run in runs}
    assert by_name["bag of words"].metrics["mae"] < 0.1 < by_name["constant"].metrics["mae"]
    np.testing.assert_allclose(
        by_name["bag of words"].predictions["probabilities"].sum(1), 1, atol=1e-6
    )


def test_texts_without_a_common_word(tmp_path: Path) -> None:
    """Then a bag of words knows no more than the shares of the classes."""
    frame = pd.DataFrame({"text": [f"word{i}" for i in range(38)] + [None, ""]})
    made = table_task("odd", frame, np.arange(40) % 2, text="text")
    asked = {**QUICK, "text": "text", "backbone": "lstm"}
    runs = compare_methods(made, ["ce"], 1, tmp_path, parameters=asked, executor=HERE)
    bag, constant = (
        next(run for run in runs if run.config.method == name).predictions["probabilities"]
        for name in ("bag of words", "constant")
    )
    np.testing.assert_array_equal(bag, constant)


def test_missing_texts_do_not_spoil_the_bag_of_words(tmp_path: Path) -> None:
    frame, ranks = mixed_table(80)
    frame.loc[[0, 5], "review"] = [None, np.nan]
    made = table_task("reviews", frame[["size", "review"]], ranks, text="review")
    bag = next(one for one in baseline_jobs(made, command="compare", parameters={})
               if one.config.method == "bag of words")  # fmt: skip
    assert bag.run().metrics["mae"] < 0.2
