"""Searches as runs: kept, gone on with, and never of the test rows."""

from dataclasses import replace

import numpy as np
import pytest

from echelon.experiments import tuning as room
from echelon.experiments.execute import RunsFailed
from echelon.experiments.tuning import Tuning, best_trial, search
from echelon.runs import read_runs
from echelon.spaces import Between, OneOf
from tests.experiments.made_up import HERE, task

SPACE = {"link": OneOf(("logit", "probit")), "ridge": Between(0.01, 100, log=True)}
TUNING = Tuning({"model": "cumulative_link"}, SPACE, trials=6, at_once=3)


def made(folder) -> dict[str, int]:
    return {place.parent.name: place.stat().st_mtime_ns for place in folder.glob("[!.]*/DONE")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return search(task(), TUNING, folder, executor=HERE), folder


def test_the_first_trial_is_the_default_and_the_best_is_the_best_that_ended(whole) -> None:
    trials, _ = whole
    assert [trial.number for trial in trials] == list(range(6))
    assert trials[0].values == {}
    assert all(set(trial.values) == set(SPACE) for trial in trials[1:])
    assert best_trial(trials).loss == min(trial.loss for trial in trials)


def test_no_run_of_a_search_depends_on_the_test_rows(whole, tmp_path) -> None:
    trials, _ = whole
    asked = task()
    other = np.zeros_like(asked.test_ranks)
    changed = replace(asked, test_ranks=other[:1], test_features=asked.test_features[:1])
    again = search(changed, TUNING, tmp_path, executor=HERE)
    assert [(t.values, t.score) for t in again] == [(t.values, t.score) for t in trials]


def test_what_was_done_is_kept_and_the_rest_is_what_it_would_have_been(whole, tmp_path) -> None:
    trials, _ = whole
    first = search(task(), replace(TUNING, trials=4), tmp_path, executor=HERE)  # as if killed
    before = made(tmp_path)
    assert len(before) == 4
    told: list[tuple[str, bool]] = []
    again = search(task(), TUNING, tmp_path, executor=HERE, on_run=lambda *run: told.append(run))
    assert before.items() <= made(tmp_path).items()  # none was made again
    assert len(made(tmp_path)) == 6
    assert sorted(is_new for _, is_new in told) == [False] * 4 + [True] * 2
    assert first == again[:4]
    assert [(t.values, t.score) for t in again] == [(t.values, t.score) for t in trials]


def test_a_trial_keeps_its_settings_where_another_optuna_would_propose_others(
    whole, tmp_path, monkeypatch
) -> None:
    search(task(), replace(TUNING, trials=3), tmp_path, executor=HERE)
    before = made(tmp_path)
    real = room.propose
    monkeypatch.setattr(room, "propose", lambda *asked: real(*asked[:3], [99]))
    again = search(task(), replace(TUNING, trials=3), tmp_path, executor=HERE)
    assert made(tmp_path) == before
    assert [trial.values for trial in again] == [trial.values for trial in whole[0][:3]]


def test_another_search_in_the_folder_is_refused(whole) -> None:
    _, folder = whole
    for other in (replace(TUNING, metric="mae"), replace(TUNING, seed=1)):
        with pytest.raises(ValueError, match=r"instead of .*; choose another folder"):
            search(task(), other, folder, executor=HERE)
    with pytest.raises(ValueError, match="choose another folder"):
        search(task(split_seed=5), TUNING, folder, executor=HERE)


def test_a_score_is_the_mean_over_divisions(tmp_path) -> None:
    asked = replace(TUNING, trials=2, divisions=2)
    trials = search(task(), asked, tmp_path, executor=HERE)
    runs = [run for run in read_runs(tmp_path) if run.config.details["trial"] == 1]
    assert {run.config.split for run in runs} == {0, 1}
    assert len({run.config.fingerprint for run in runs}) == 2
    scores = [run.metrics["ranked_probability_score"] for run in runs]
    assert trials[1].score == pytest.approx(np.mean(scores))


def test_a_trial_that_fails_is_noted_and_the_default_is_not_allowed_to(tmp_path) -> None:
    asked = replace(TUNING, space={"ridge": OneOf((-1.0, 2.0))}, trials=3)
    trials = search(task(), asked, tmp_path, executor=HERE)
    assert sorted(trial.state for trial in trials) == ["done", "done", "failed"]
    (failed,) = (trial for trial in trials if trial.state == "failed")
    assert "ridge must be" in failed.reason
    assert failed.score is None
    wrong = replace(TUNING, parameters={"model": "cumulative_link", "link": "log"})
    with pytest.raises(RunsFailed, match="link must be"):
        search(task(), wrong, tmp_path / "wrong", executor=HERE)


def test_networks_that_fall_behind_end_early(tmp_path) -> None:
    parameters = {
        "backbone": "mlp", "device": "cpu", "settings": {"max_epochs": 12, "batch_size": 32},
        "backbone_options": {"hidden": [16]},
    }  # fmt: skip
    space = {"settings.learning_rate": OneOf((1e-2, 1.1e-2, 1.2e-2, 9e-3, 1e-7, 1e-8, 1e-9))}
    asked = Tuning(parameters, space, trials=8, at_once=4)
    trials = search(task(), asked, tmp_path, executor=HERE)
    pruned = [trial for trial in trials if trial.state == "pruned"]
    assert pruned
    for trial in pruned:
        assert trial.values["settings.learning_rate"] < 1e-6
        assert 5 <= len(trial.steps[0]) < 12
    assert best_trial(trials).state == "done"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"trials": 0}, "trials must be a whole number from 1"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"metric": "f1"}, "metric"),
        ({"validation_share": 1.0}, "validation_share must lie between 0 and 1"),
        ({"space": {}}, "nothing to search of cumulative_link"),
        ({"space": {"leaves": OneOf((1, 2))}}, "'leaves', which is no parameter of cumulative_li"),
        ({"space": {"link.a": OneOf((1, 2))}}, r"'link.a', which is no parameter"),
    ],
)
def test_what_cannot_be_searched_is_said_before_anything_runs(options, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        replace(TUNING, **options)
