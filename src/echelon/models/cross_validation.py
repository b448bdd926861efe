"""Cross-validation on the curve: every row judged by a model that has not seen it."""

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from echelon.curve import RankCurve
from echelon.data.labels import Labels
from echelon.data.splits import folds as assign_folds
from echelon.models.base import CurveClassifier
from echelon.models.predicting import require_same_length


def cross_val_curve(
    model: CurveClassifier,
    X: Any,  # noqa: N803
    y: Any,
    *,
    folds: int = 5,
    groups: Any = None,
    sample_weight: ArrayLike | None = None,
) -> RankCurve:
    """The curve of every row, from a model that has not seen it.

    Use this instead of scikit-learn's ``cross_val_predict(method="predict_proba")``, which sorts
    string labels by letter. Groups and twins of a row stay on one side.

    Parameters
    ----------
    model : any model of echelon
        Cloned for each fold; it is not fitted itself.
    X, y, sample_weight, groups
        As for its `fit`.
    folds : int
        The number of divisions; every row is predicted by the model of the fold that lacks it.

    Examples
    --------
    >>> from echelon.data import make_friedman
    >>> data = make_friedman(200, num_classes=3)
    >>> from echelon import OrdinalClassifier
    >>> quick = OrdinalClassifier(settings={"max_epochs": 1}, random_state=0)
    >>> cross_val_curve(quick, data.features, data.ranks, folds=2)
    RankCurve(rows=(200,), num_classes=3)
    """
    labels = Labels.of(y, model.classes)
    ranks = labels.to_ranks(y)
    seed = int(check_random_state(model.random_state).randint(2**31 - 1))
    table = model.read_schema(X).read(X)
    require_same_length(len(table), len(ranks), "y")
    number = assign_folds(table, folds, groups=groups, generator=np.random.default_rng(seed))
    weight = None if sample_weight is None else np.asarray(sample_weight)
    every_group = None if groups is None else np.asarray(groups)
    curves, order = [], []
    for fold in range(folds):
        inside, outside = np.flatnonzero(number != fold), np.flatnonzero(number == fold)
        fitted = clone(model).set_params(classes=labels.classes.tolist())
        fitted.fit(
            _take(X, inside),
            labels.classes[ranks[inside]],
            sample_weight=None if weight is None else weight[inside],
            groups=None if every_group is None else every_group[inside],
        )
        curves.append(fitted.curve(_take(X, outside)).to("cpu", torch.float64))
        order.append(outside)
    back = np.argsort(np.concatenate(order))
    return RankCurve.concatenate(curves).rows(torch.from_numpy(back))


def _take(table: Any, rows: NDArray[np.int64]) -> Any:
    if hasattr(table, "iloc"):
        return table.iloc[rows]
    if isinstance(table, (list, tuple)):  # of texts or images, which an array would tear apart
        return [table[row] for row in rows]
    return np.asarray(table)[rows]
