"""Scorers for scikit-learn: ``GridSearchCV(model, grid, scoring=scorers.neg_mae)``.

A scorer is called with a fitted estimator, its input and the true labels, and a larger value is
better. Labels are read in the order of the estimator's ``classes_``, so strings work. A number
among the labels that is no class of the estimator, as its rows were all in another fold, is a class
of its own between those that are smaller and those that are larger: it is never predicted, and
its probability counts as the smallest number above 0, so that every score is finite.

There is a scorer for every metric of :data:`echelon.evaluation.metrics.METRICS`, under its name,
with ``neg_`` before it where less is better: `neg_mae`, `quadratic_weighted_kappa`. SCORERS has
them all by name.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon.evaluation import metrics

__all__ = ["SCORERS", "OrdinalScorer", "with_unseen"]


class OrdinalScorer:
    """A metric as scikit-learn calls it.

    Parameters
    ----------
    metric : str
        A name of :mod:`echelon.evaluation.metrics`.

    Examples
    --------
    >>> import echelon
    >>> data = echelon.data.make_friedman(200, num_classes=3)
    >>> model = echelon.CumulativeLinkModel().fit(data.features, data.ranks)
    >>> OrdinalScorer("accuracy")(model, data.features, model.predict(data.features))
    1.0
    """

    def __init__(self, metric: str) -> None:
        self.row = metrics.metric(metric)
        self.metric = metric

    def __call__(
        self,
        estimator: Any,
        X: Any,  # noqa: N803
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """The score of an estimator with ``classes_`` in rank order."""
        classes = getattr(estimator, "classes_", None)
        if classes is None:
            raise ValueError(
                f"{type(estimator).__name__} has no classes_, so the order of its labels is unknown"
            )
        predicted = estimator.predict(X) if self.row.of_labels else estimator.predict_proba(X)
        every = with_unseen(np.asarray(classes), np.asarray(y))
        if not self.row.of_labels and len(every) > len(classes):
            among = np.isin(every, classes)
            wider = np.full((len(predicted), len(every)), np.finfo(np.float64).tiny)
            wider[:, among] = predicted
            predicted = wider
        value = self.row.function(y, predicted, classes=every, sample_weight=sample_weight)
        return -self.row.loss(float(value))

    @property
    def name(self) -> str:
        """That of the metric, with ``neg_`` before it where less is better.

        Examples
        --------
        >>> OrdinalScorer("mae").name, OrdinalScorer("accuracy").name
        ('neg_mae', 'accuracy')
        """
        return self.metric if self.row.higher_is_better else f"neg_{self.metric}"

    def __repr__(self) -> str:
        return f"{__name__}.{self.name}"


def with_unseen(classes: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Classes in rank order, and among them the labels that are none of them, if all are numbers.

    Parameters
    ----------
    classes : array, shape (K,)
        In rank order; numbers must rise or fall along it to say where another one belongs.
    labels : array, shape (n,)
        Labels, among which there may be others than the classes.

    Examples
    --------
    >>> with_unseen(np.array([1, 2, 5]), np.array([3, 2])).tolist()
    [1, 2, 3, 5]
    >>> with_unseen(np.array([5, 2, 1]), np.array([3, 2])).tolist()
    [5, 3, 2, 1]
    """
    if classes.dtype.kind not in "biuf" or labels.dtype.kind not in "biuf":
        return classes
    unseen = np.setdiff1d(labels, classes)
    if not len(unseen):
        return classes
    steps = classes[1:] > classes[:-1]
    if steps.all() or not steps.any():
        every = np.union1d(classes, unseen)
        return every if steps.all() else every[::-1]
    raise ValueError(
        f"the place of the label {unseen[0]!r} among the classes {classes.tolist()} is not known, "
        f"as these neither rise nor fall; name all classes when the estimator is made"
    )


SCORERS: Mapping[str, OrdinalScorer] = {
    scorer.name: scorer for scorer in map(OrdinalScorer, metrics.METRICS)
}
"""The scorers by name, one for every metric.

Examples
--------
>>> "neg_mae" in SCORERS and "quadratic_weighted_kappa" in SCORERS
True
"""


def __getattr__(name: str) -> OrdinalScorer:
    """The scorer of a name of :data:`SCORERS`, so that each is an attribute of this module."""
    if name in SCORERS:
        return SCORERS[name]
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}; its scorers are {', '.join(SCORERS)}"
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *SCORERS})
