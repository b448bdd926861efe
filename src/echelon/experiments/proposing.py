"""What Optuna does for a search: it proposes what to try next, and ends what is not promising.

Invariant: both are functions of the trials that are known and of a seed. Nothing is kept between
two calls, so that a search that was interrupted goes on as it would have gone on.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from echelon.extras import require
from echelon.spaces import Between, Dimension, Space

_STARTUP = 8  # trials that are drawn at random before any is proposed by what is known
_REDRAWS = 50  # for a proposal that was tried before
_RIVALS = 4  # finished trials that a trial is compared with, at the least
_WARM_UP = 5  # steps that every trial has


@dataclass(frozen=True)
class Trial:
    """A trial that has ended.

    Parameters
    ----------
    number : int
        0 is the default.
    values : mapping
        What was tried, by the names of the space; empty for the default.
    state : {"done", "pruned", "failed"}
    score : float, optional
        The metric on the validation rows; None of a trial that failed.
    loss : float, optional
        The same as something to be made small.
    seconds : float
    steps : tuple of mapping
        The losses after each step, by its number, on each division.
    reason : str
        Why it failed.
    """

    number: int
    values: Mapping[str, Any]
    state: Literal["done", "pruned", "failed"]
    score: float | None
    loss: float | None
    seconds: float = 0.0
    steps: tuple[Mapping[int, float], ...] = field(default=(), repr=False)
    reason: str = ""


def propose(
    space: Space, trials: Sequence[Trial], count: int, seed: Sequence[int]
) -> list[dict[str, Any]]:
    """Values to try next, none of which was tried before; fewer where no others are left.

    Parameters
    ----------
    space : mapping from name to Between or OneOf
    trials : sequence of Trial
    count : int
    seed : sequence of int
        As numpy's `default_rng` takes it.

    Examples
    --------
    >>> from echelon.spaces import Between
    >>> space = {"ridge": Between(0.1, 10, log=True)}
    >>> [values] = propose(space, [], 1, [0])
    >>> 0.1 <= values["ridge"] <= 10
    True
    """
    import numpy as np

    optuna = require("optuna", "searches by `tune`")
    number = int(np.random.default_rng(seed).integers(2**31))
    drawn = optuna.samplers.RandomSampler(seed=number)
    study = make_study(
        space, trials, optuna.samplers.TPESampler(seed=number, n_startup_trials=_STARTUP)
    )
    tried = {_key(trial.values) for trial in trials}
    proposals: list[dict[str, Any]] = []
    for _ in range(count):
        values = _ask(study, space)
        for _ in range(_REDRAWS):
            if _key(values) not in tried:
                break
            study.sampler = drawn
            values = _ask(study, space)
        else:
            break
        tried.add(_key(values))
        proposals.append(values)
    return proposals


def make_study(space: Space, trials: Sequence[Trial], sampler: Any = None) -> Any:
    """A study of Optuna, in memory, that holds trials: what its own tools take."""
    optuna = require("optuna", "searches by `tune`")
    states = {
        "done": optuna.trial.TrialState.COMPLETE,
        "pruned": optuna.trial.TrialState.PRUNED,
        "failed": optuna.trial.TrialState.FAIL,
    }
    with _quiet(optuna):
        study = optuna.create_study(direction="minimize", sampler=sampler)
    for trial in trials:
        named = {name: space[name] for name in trial.values if name in space}
        study.add_trial(
            optuna.trial.create_trial(
                state=states[trial.state],
                value=trial.loss,
                params={name: _label(space[name], trial.values[name]) for name in named},
                distributions={
                    name: _distribution(optuna, dimension) for name, dimension in named.items()
                },
                # what stops a trial on one division is what was seen on that one
                intermediate_values=dict(trial.steps[0]) if trial.steps else {},
            )
        )
    return study


class Watcher:
    """What a fit calls after each step: it ends one that is behind the middle of its rivals.

    Parameters
    ----------
    rivals : sequence of mapping
        The losses after each step, by its number, of trials that went to their end.

    Attributes
    ----------
    steps : dict from int to float
        The losses that were reported.
    is_pruned : bool
        Whether it ended the fit.

    Examples
    --------
    >>> good = [{step: 0.1 for step in range(1, 20)}] * 5
    >>> watcher = Watcher(good)
    >>> [watcher(step, 0.9) for step in range(1, 6)]
    [None, None, None, None, True]
    """

    def __init__(self, rivals: Sequence[Mapping[int, float]]) -> None:
        self.steps: dict[int, float] = {}
        self.is_pruned = False
        self._trial: Any = None
        if len(rivals) >= _RIVALS:
            optuna = require("optuna", "searches by `tune`")
            ended = [
                Trial(i, {}, "done", 0.0, 0.0, steps=(steps,)) for i, steps in enumerate(rivals)
            ]
            study = make_study({}, ended)
            study.pruner = optuna.pruners.MedianPruner(
                n_startup_trials=_RIVALS, n_warmup_steps=_WARM_UP, n_min_trials=_RIVALS
            )
            self._trial = study.ask()

    def __call__(self, step: int, loss: float) -> bool | None:
        """Take the loss after a step; True where the fit is to end."""
        self.steps[step] = loss
        if self._trial is None:
            return None
        self._trial.report(loss, step)
        self.is_pruned = self.is_pruned or bool(self._trial.should_prune())
        return self.is_pruned or None


def _ask(study: Any, space: Space) -> dict[str, Any]:
    optuna = require("optuna", "searches by `tune`")
    named = {name: _distribution(optuna, dimension) for name, dimension in space.items()}
    given = study.ask(named).params
    return {name: _value(dimension, given[name]) for name, dimension in space.items()}


def _distribution(optuna: Any, dimension: Dimension) -> Any:
    kinds = optuna.distributions
    if not isinstance(dimension, Between):
        return kinds.CategoricalDistribution([_label(dimension, v) for v in dimension.values])
    if dimension.whole:
        return kinds.IntDistribution(int(dimension.low), int(dimension.high), log=dimension.log)
    return kinds.FloatDistribution(float(dimension.low), float(dimension.high), log=dimension.log)


def _label(dimension: Dimension, value: Any) -> Any:
    """A value as Optuna takes it: of those to choose from, what is no plain value as its JSON."""
    if (
        isinstance(dimension, Between)
        or value is None
        or isinstance(value, (bool, int, float, str))
    ):
        return value
    return json.dumps(value)


def _value(dimension: Dimension, label: Any) -> Any:
    if isinstance(dimension, Between):
        return dimension.readable(label)
    return next(value for value in dimension.values if _label(dimension, value) == label)


def _key(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True)


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
