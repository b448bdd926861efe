"""What Optuna proposes and ends, as functions of what is known."""

import pytest

from echelon.experiments.proposing import Trial, Watcher, make_study, propose
from echelon.spaces import Between, OneOf

SPACE = {
    "rate": Between(0.001, 1, log=True), "leaves": Between(2, 40, whole=True),
    "hidden": OneOf(([8, 8], [16])),
}  # fmt: skip


def ended(number: int, values, loss: float) -> Trial:
    return Trial(number, values, "done", loss, loss)


def test_the_same_knowledge_and_seed_give_the_same_proposals() -> None:
    first = propose(SPACE, [], 3, [0, 4])
    assert first == propose(SPACE, [], 3, [0, 4])
    assert first[:2] == propose(SPACE, [], 2, [0, 4])  # also where fewer are asked for
    assert first != propose(SPACE, [], 3, [0, 8])
    for values in first:
        assert 0.001 <= values["rate"] <= 1
        assert isinstance(values["leaves"], int)
        assert values["hidden"] in ([8, 8], [16])


def test_proposals_gather_where_the_loss_is_small() -> None:
    space = {"x": Between(0.0, 1.0)}
    trials = []
    for number in range(40):
        [values] = propose(space, trials, 1, [0, number])
        trials.append(ended(number, values, abs(values["x"] - 0.3)))
    late = [abs(trial.values["x"] - 0.3) for trial in trials[20:]]
    assert sorted(late)[10] < 0.15  # of random numbers, the median would be 0.25


def test_nothing_is_proposed_twice_and_small_spaces_come_to_an_end() -> None:
    space = {"a": OneOf((1, 2)), "b": OneOf((True, False))}
    first = propose(space, [], 3, [0])
    trials = [ended(number, values, 0.1) for number, values in enumerate(first)]
    rest = propose(space, trials, 3, [1])
    tried = [tuple(values.items()) for values in first + rest]
    assert len(tried) == len(set(tried)) == 4


def test_a_study_holds_the_trials_as_optuna_s_own_tools_take_them() -> None:
    trials = [
        ended(0, {}, 0.5),
        ended(1, {"rate": 0.1, "leaves": 3, "hidden": [16]}, 0.2),
        Trial(2, {"rate": 0.2, "leaves": 3, "hidden": [16]}, "failed", None, None),
    ]
    study = make_study(SPACE, trials)
    assert study.best_value == 0.2
    assert study.best_params == {"rate": 0.1, "leaves": 3, "hidden": "[16]"}
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "COMPLETE", "FAIL"]


@pytest.mark.parametrize(("loss", "is_pruned"), [(0.9, True), (0.1, False)])
def test_a_fit_behind_the_middle_of_its_rivals_ends(loss: float, is_pruned: bool) -> None:
    rivals = [dict.fromkeys(range(1, 10), 0.1 * i) for i in range(1, 7)]
    watcher = Watcher(rivals)
    said = [watcher(step, loss) for step in range(1, 8)]
    assert watcher.is_pruned == is_pruned
    assert said[:4] == [None] * 4  # a warm-up
    assert (True in said) == is_pruned
    assert watcher.steps == dict.fromkeys(range(1, 8), loss)


def test_few_rivals_end_nothing() -> None:
    watcher = Watcher([dict.fromkeys(range(1, 10), 0.1)] * 3)
    assert [watcher(step, 9.0) for step in range(1, 9)] == [None] * 8
