"""Metrics of predicted ranks. Arguments are alike everywhere: truth first, then the prediction.

Every metric of labels is a function of one table, how much weight each pair of true and predicted
value has. So a metric of a whole file and one that was collected from its chunks (see
:mod:`echelon.evaluation.running`) are the same function of the same table. METRICS has a row for
each; whatever else depends on a metric's name is derived from it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon.evaluation import _joint
from echelon.evaluation.arguments import count, joint_of, read, read_probabilities

__all__ = [
    "METRICS",
    "Metric",
    "accuracy",
    "accuracy_within",
    "all_scores",
    "amae",
    "concordance_index",
    "confusion_matrix",
    "constant_scores",
    "kendall_tau",
    "linear_weighted_kappa",
    "log_score",
    "mae",
    "metric",
    "minimum_sensitivity",
    "mmae",
    "quadratic_weighted_kappa",
    "ranked_probability_score",
    "rmse",
    "shown_metrics",
    "spearman",
]

Vector = NDArray[np.float64]


# ---- errors --------------------------------------------------------------------------------------


def mae(
    truth: ArrayLike,
    prediction: ArrayLike,
    *,
    num_classes: int | None = None,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean absolute error in ranks; the arguments are those of every metric here.

    Parameters
    ----------
    truth, prediction : array-like, shape (n,)
        Ranks, or labels if `classes` are given. A predicted rank need not be a whole number.
    num_classes : int, optional
        K; ranks outside 0..K-1 then raise.
    classes : sequence, optional
        All labels, the lowest first.
    sample_weight : array-like, shape (n,), optional
        What each row counts for; without it, each counts alike.

    Examples
    --------
    >>> mae([0, 4], [4, 0], num_classes=5)
    4.0
    >>> mae(["low", "mid"], ["high", "mid"], classes=["low", "mid", "high"])
    1.0
    """
    return _joint.mae(joint_of(truth, prediction, num_classes, classes, sample_weight))


def rmse(
    truth: ArrayLike,
    prediction: ArrayLike,
    *,
    num_classes: int | None = None,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Root of the mean squared error in ranks. Arguments as in :func:`mae`.

    Examples
    --------
    >>> rmse([0, 1, 2, 3], [0, 1, 2, 1])
    1.0
    """
    return _joint.rmse(joint_of(truth, prediction, num_classes, classes, sample_weight))


def amae(
    truth: ArrayLike,
    prediction: ArrayLike,
    *,
    num_classes: int | None = None,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The mean over the true classes of their MAE, each class counting alike.

    Classes that do not occur in the truth have no error and do not count. Arguments as in
    :func:`mae`.

    Examples
    --------
    >>> amae([0, 0, 0, 4], [0, 0, 0, 0], num_classes=5)
    2.0
    """
    return _joint.amae(joint_of(truth, prediction, num_classes, classes, sample_weight))


def mmae(
    truth: ArrayLike,
    prediction: ArrayLike,
    *,
    num_classes: int | None = None,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The MAE of the true class that has the largest. Arguments as in :func:`mae`.

    Examples
    --------
    >>> mmae([0, 0, 0, 4], [0, 0, 0, 0], num_classes=5)
    4.0
    """
    return _joint.mmae(joint_of(truth, prediction, num_classes, classes, sample_weight))


# ---- hits ----------------------------------------------------------------------------------------


def accuracy(
    truth: ArrayLike,
    prediction: ArrayLike,
    *,
    num_classes: int | None = None,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of the rows whose rank is predicted exactly. Arguments as in :func:`mae`.

    Examples
    --------
    >>> accuracy([0, 1, 2, 3], [0, 1, 2, 1])
    0.75
    """
    return _joint.accuracy(joint_of(truth, prediction, num_classes, classes, sample_weight))


def accuracy_within(
    truth: ArrayLike,
    prediction: ArrayLike,
    k: int = 1,
    *,
    num_classes: int | None = None,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of the rows whose rank is missed by at most `k`.

    Parameters
    ----------
    truth, prediction, num_classes, classes, sample_weight
        As in :func:`mae`.
    k : int
        The largest miss that counts as a hit, in ranks.

    Examples
    --------
    >>> accuracy_within([0, 1, 2, 3], [0, 2, 2, 0])
    0.75
    """
    if k < 0:
        raise ValueError(f"k must be at least 0; got {k}")
    return _joint.accuracy_within(
        joint_of(truth, prediction, num_classes, classes, sample_weight), k
    )


def minimum_sensitivity(
    truth: ArrayLike,
    prediction: ArrayLike,
    *,
    num_classes: int | None = None,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The share of exact hits in the true class that has the lowest. Arguments as in :func:`mae`.

    Examples
    --------
    >>> minimum_sensitivity([0, 0, 1, 1], [0, 0, 1, 0])
    0.5
    """
    return _joint.minimum_sensitivity(
        joint_of(truth, prediction, num_classes, classes, sample_weight)
    )


def confusion_matrix(
    truth: ArrayLike,
    prediction: ArrayLike,
    *,
    num_classes: int | None = None,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """The weight of each pair of true (row) and predicted (column) rank, (K, K).

    Without `num_classes` and `classes`, K is one more than the largest rank that occurs. Other
    arguments as in :func:`mae`.

    Examples
    --------
    >>> confusion_matrix([0, 1, 1], [0, 1, 0], num_classes=3)
    array([[1., 0., 0.],
           [1., 1., 0.],
           [0., 0., 0.]])
    """
    true_ranks, predicted, weight, size = read(
        truth, prediction, num_classes, classes, sample_weight
    )
    for name, values in (("truth", true_ranks), ("prediction", predicted)):
        if (values != np.floor(values)).any() or values.min() < 0:
            raise ValueError(f"{name} must be whole numbers from 0 on to be counted")
    size = size or int(max(true_ranks.max(), predicted.max())) + 1
    return count(true_ranks, predicted, weight, size)


# ---- agreement and association -------------------------------------------------------------------


def linear_weighted_kappa(
    truth: ArrayLike,
    prediction: ArrayLike,
    *,
    num_classes: int | None = None,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Cohen's kappa with linear weights: 1 minus the absolute error over that of chance.

    Chance pairs every truth with every prediction. 1 is perfect, 0 is chance; where truth and
    prediction are one and the same constant, it is 1. Arguments as in :func:`mae`.

    Examples
    --------
    >>> linear_weighted_kappa([0, 1, 2], [0, 1, 2])
    1.0
    """
    return _joint.linear_kappa(joint_of(truth, prediction, num_classes, classes, sample_weight))


def quadratic_weighted_kappa(
    truth: ArrayLike,
    prediction: ArrayLike,
    *,
    num_classes: int | None = None,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Cohen's kappa with squared weights: 1 minus the squared error over that of chance.

    Chance pairs every truth with every prediction. 1 is perfect, 0 is chance; where truth and
    prediction are one and the same constant, it is 1. Arguments as in :func:`mae`.

    Examples
    --------
    >>> quadratic_weighted_kappa([0, 1, 2], [0, 1, 2])
    1.0
    """
    return _joint.quadratic_kappa(joint_of(truth, prediction, num_classes, classes, sample_weight))


def kendall_tau(
    truth: ArrayLike,
    prediction: ArrayLike,
    *,
    num_classes: int | None = None,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Kendall's tau-b: pairs in the right order minus those in the wrong one, corrected for ties.

    0 where truth or prediction is constant. A weight counts a row that many times. Arguments as in
    :func:`mae`.

    Examples
    --------
    >>> kendall_tau([0, 1, 2], [0, 2, 1])
    0.3333333333333333
    """
    return _joint.kendall_tau(joint_of(truth, prediction, num_classes, classes, sample_weight))


def spearman(
    truth: ArrayLike,
    prediction: ArrayLike,
    *,
    num_classes: int | None = None,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Spearman's correlation: that of the places in the order, ties sharing the middle one.

    0 where truth or prediction is constant. Arguments as in :func:`mae`.

    Examples
    --------
    >>> spearman([0, 1, 2], [0, 2, 1])
    0.5
    """
    return _joint.spearman(joint_of(truth, prediction, num_classes, classes, sample_weight))


def concordance_index(
    truth: ArrayLike,
    prediction: ArrayLike,
    *,
    num_classes: int | None = None,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Of the pairs with different truth, the share that the prediction puts in the right order.

    Pairs with equal predictions count half; 0.5 where all truths are equal. Arguments as in
    :func:`mae`.

    Examples
    --------
    >>> concordance_index([0, 0, 1], [0, 1, 1])
    0.75
    """
    return _joint.concordance_index(
        joint_of(truth, prediction, num_classes, classes, sample_weight)
    )


# ---- distributions -------------------------------------------------------------------------------


def ranked_probability_score(
    truth: ArrayLike,
    probabilities: ArrayLike,
    *,
    num_classes: int | None = None,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean over the rows of the squared errors of P(y <= k), summed over the thresholds.

    Parameters
    ----------
    truth : array-like, shape (n,)
        Ranks, or labels if `classes` are given.
    probabilities : array-like, shape (n, K)
        Each row sums to 1.
    num_classes, classes, sample_weight : optional
        As in :func:`mae`; K must be that of the probabilities.

    Examples
    --------
    >>> ranked_probability_score([0], [[0.5, 0.25, 0.25]])
    0.3125
    """
    losses, weight = ranked_probability_losses(
        truth, probabilities, num_classes=num_classes, classes=classes, sample_weight=sample_weight
    )
    return float(np.average(losses, weights=weight))


def log_score(
    truth: ArrayLike,
    probabilities: ArrayLike,
    *,
    num_classes: int | None = None,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean of -log P(y = truth); infinite where a truth was called impossible.

    Arguments as in :func:`ranked_probability_score`.

    Examples
    --------
    >>> round(log_score([0, 1], [[0.5, 0.5], [0.5, 0.5]]), 4)
    0.6931
    """
    losses, weight = log_losses(
        truth, probabilities, num_classes=num_classes, classes=classes, sample_weight=sample_weight
    )
    return float(np.average(losses, weights=weight))


def ranked_probability_losses(
    truth: ArrayLike,
    probabilities: ArrayLike,
    *,
    num_classes: int | None = None,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> tuple[Vector, Vector | None]:
    """The ranked probability score of each row, (n,), and the weights (n,) or None."""
    ranks, p, weight = read_probabilities(truth, probabilities, num_classes, classes, sample_weight)
    below = p.cumsum(axis=1)[:, :-1]
    not_above = ranks[:, None] <= np.arange(p.shape[1] - 1)
    losses: Vector = ((below - not_above) ** 2).sum(axis=1)
    return losses, weight


def log_losses(
    truth: ArrayLike,
    probabilities: ArrayLike,
    *,
    num_classes: int | None = None,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> tuple[Vector, Vector | None]:
    """The -log P(y = truth) of each row, (n,), and the weights (n,) or None."""
    ranks, p, weight = read_probabilities(truth, probabilities, num_classes, classes, sample_weight)
    with np.errstate(divide="ignore"):
        losses: Vector = -np.log(p[np.arange(len(p)), ranks])
    if weight is not None:
        losses[weight == 0] = 0.0  # or an infinite one would make the mean NaN
    return losses, weight


# ---- the table -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Metric:
    """What the rest of the program must know of a metric.

    Parameters
    ----------
    name : str
        As it is asked for and written down.
    title : str
        The name that heads a column of a table.
    unit : {"ranks", "share", "coefficient", "score"}
        What its values are: a distance in ranks, a share of the rows, a coefficient that is 1 for
        a perfect prediction, or the mean score of distributions.
    higher_is_better : bool
        Whether larger values are better.
    meaning : str
        What it is, in a sentence for people who have not met it.
    function : callable
        Of the truth and the prediction, as :func:`mae`.
    of_joint : callable, optional
        For a metric of labels, the same function of a table of true and predicted values.
    row_losses : callable, optional
        For a metric of distributions, the loss of each row, whose mean is the metric.
    shown : {"always", "wide", "documents"}
        Where people see it: in every table, in those with room for more, or only in the documents
        that are written for programs.

    Examples
    --------
    >>> row = METRICS["quadratic_weighted_kappa"]
    >>> row.title, row.direction
    ('QWK', 'more is better')
    """

    name: str
    title: str
    unit: Literal["ranks", "share", "coefficient", "score"]
    higher_is_better: bool
    meaning: str
    function: Callable[..., float]
    of_joint: Callable[[_joint.Joint], float] | None = None
    row_losses: Callable[..., tuple[Vector, Vector | None]] | None = None
    shown: Literal["always", "wide", "documents"] = "documents"

    @property
    def of_labels(self) -> bool:
        """Whether it judges labels; it judges distributions otherwise."""
        return self.of_joint is not None

    @property
    def direction(self) -> str:
        """Which values are better, in words."""
        return "more is better" if self.higher_is_better else "less is better"

    def loss(self, value: float) -> float:
        """The value of the metric as something to be made small."""
        return -value if self.higher_is_better else value


METRICS: Mapping[str, Metric] = {
    row.name: row
    for row in (
        Metric(
            "mae", "MAE", "ranks", False,
            "The mean absolute error: by how many classes a prediction misses on average.",
            mae, _joint.mae, shown="always",
        ),
        Metric(
            "rmse", "RMSE", "ranks", False,
            "The root mean squared error: as the MAE, but one large miss weighs more than several "
            "small ones.",
            rmse, _joint.rmse, shown="always",
        ),
        Metric(
            "accuracy", "accuracy", "share", True,
            "The share of the rows whose class is predicted exactly.",
            accuracy, _joint.accuracy, shown="always",
        ),
        Metric(
            "accuracy_within", "within 1", "share", True,
            "The share of the rows whose prediction is right or a neighbour of the true class.",
            accuracy_within, _joint.accuracy_within, shown="wide",
        ),
        Metric(
            "amae", "AMAE", "ranks", False,
            "The MAE of each true class, averaged over the classes: rare ones count as much as "
            "frequent ones.",
            amae, _joint.amae,
        ),
        Metric(
            "mmae", "MMAE", "ranks", False,
            "The MAE of the true class that is predicted worst.",
            mmae, _joint.mmae,
        ),
        Metric(
            "linear_weighted_kappa", "linear kappa", "coefficient", True,
            "Agreement beyond chance, where a miss costs as many classes as it is off: 1 is "
            "perfect, 0 no better than chance.",
            linear_weighted_kappa, _joint.linear_kappa,
        ),
        Metric(
            "quadratic_weighted_kappa", "QWK", "coefficient", True,
            "The quadratic weighted kappa, agreement beyond chance where large misses cost most: 1 "
            "is perfect, 0 no better than chance.",
            quadratic_weighted_kappa, _joint.quadratic_kappa, shown="always",
        ),
        Metric(
            "kendall_tau", "Kendall's tau", "coefficient", True,
            "Whether rows are put in the right order, by pairs: 1 is perfect, 0 is chance.",
            kendall_tau, _joint.kendall_tau,
        ),
        Metric(
            "spearman", "Spearman", "coefficient", True,
            "Whether rows are put in the right order, by the correlation of their places: 1 is "
            "perfect, 0 is chance.",
            spearman, _joint.spearman,
        ),
        Metric(
            "concordance_index", "C-index", "share", True,
            "The share of pairs of rows of different classes that are put in the right order; half "
            "is chance.",
            concordance_index, _joint.concordance_index,
        ),
        Metric(
            "minimum_sensitivity", "least sensitivity", "share", True,
            "The share of rows predicted exactly in the class where that share is smallest.",
            minimum_sensitivity, _joint.minimum_sensitivity,
        ),
        Metric(
            "ranked_probability_score", "RPS", "score", False,
            "The ranked probability score: how far the whole predicted distribution is from what "
            "happened. It judges the probabilities, where the MAE judges the labels.",
            ranked_probability_score, row_losses=ranked_probability_losses, shown="always",
        ),
        Metric(
            "log_score", "log score", "score", False,
            "How surprised the model is by the true classes: a truth that it held for nearly "
            "impossible costs most.",
            log_score, row_losses=log_losses,
        ),
    )
}  # fmt: skip
"""The metrics by name, each with its title, its meaning and its function.

Examples
--------
>>> METRICS["mae"].meaning
'The mean absolute error: by how many classes a prediction misses on average.'
"""


def metric(name: str) -> Metric:
    """The row of a metric; an unknown name raises and lists those there are.

    Parameters
    ----------
    name : str
        A name of :data:`METRICS`.

    Examples
    --------
    >>> metric("mae").title, metric("log_score").of_labels
    ('MAE', False)
    >>> metric("mean")
    Traceback (most recent call last):
    ...
    ValueError: metric must be one of accuracy, accuracy_within, amae, concordance_index,
    kendall_tau, linear_weighted_kappa, log_score, mae, minimum_sensitivity, mmae,
    quadratic_weighted_kappa, ranked_probability_score, rmse, spearman; got 'mean'
    """
    if name not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(sorted(METRICS))}; got {name!r}")
    return METRICS[name]


def shown_metrics(*, wide: bool) -> list[Metric]:
    """The few metrics that a table for people has.

    Parameters
    ----------
    wide : bool
        Whether the table has room for more of them.

    Examples
    --------
    >>> [row.title for row in shown_metrics(wide=False)]
    ['MAE', 'RMSE', 'accuracy', 'QWK', 'RPS']
    """
    allowed = ("always", "wide") if wide else ("always",)
    return [row for row in METRICS.values() if row.shown in allowed]


def all_scores(
    truth: ArrayLike,
    prediction: ArrayLike,
    probabilities: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> dict[str, float]:
    """Every metric of predictions, by name.

    Parameters
    ----------
    truth, prediction : array-like, shape (n,)
        The true ranks, or the predicted ones.
    probabilities : array-like, shape (n, K)
        P(y = k) of each row.
    sample_weight : array-like, shape (n,), optional
        What each row counts for; without it, each counts alike.

    Examples
    --------
    >>> scores = all_scores([0, 1], [0, 0], [[0.8, 0.2], [0.6, 0.4]])
    >>> scores["mae"], scores["accuracy"]
    (0.5, 0.5)
    """
    num_classes = np.shape(probabilities)[-1]
    joint = joint_of(truth, prediction, num_classes, None, sample_weight)
    return {
        name: row.function(truth, probabilities, sample_weight=sample_weight)
        if row.of_joint is None
        else row.of_joint(joint)
        for name, row in METRICS.items()
    }


def constant_scores(truth: ArrayLike, num_classes: int) -> dict[str, float]:
    """Every metric of a model that says the same of each row, by name.

    It gives the shares of the classes among these very rows and predicts their middle one, so that
    no constant does better in the MAE or the ranked probability score.

    Parameters
    ----------
    truth : array-like, shape (n,)
        The true ranks.
    num_classes : int
        The number of ranks, K.

    Examples
    --------
    >>> scores = constant_scores([0, 1, 1, 2], num_classes=3)
    >>> scores["mae"], scores["accuracy"]
    (0.5, 0.5)
    """
    ranks = np.asarray(truth).astype(np.int64)
    shares = np.bincount(ranks, minlength=num_classes) / len(ranks)
    middle = int((shares.cumsum()[:-1] < 0.5).sum())
    return all_scores(ranks, np.full(len(ranks), middle), np.tile(shares, (len(ranks), 1)))
