"""Scorers for scikit-learn: ``GridSearchCV(model, grid, scoring=scorers.neg_mae)``.

A scorer is called with a fitted estimator, its input and the true labels, and a larger value is
better. Labels are read in the order of the estimator's ``classes_``, so strings work.
"""

from typing import Any

from numpy.typing import ArrayLike

from echelon.evaluation import metrics


class OrdinalScorer:
    """A metric as scikit-learn calls it.

    Parameters
    ----------
    metric : str
        A name of :mod:`echelon.evaluation.metrics`.
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
        value = self.row.function(y, predicted, classes=classes, sample_weight=sample_weight)
        return -self.row.loss(float(value))

    def __repr__(self) -> str:
        sign = "" if self.row.higher_is_better else "neg_"
        return f"echelon.evaluation.scorers.{sign}{self.metric}"


neg_mae = OrdinalScorer("mae")
neg_rmse = OrdinalScorer("rmse")
neg_amae = OrdinalScorer("amae")
neg_mmae = OrdinalScorer("mmae")
accuracy = OrdinalScorer("accuracy")
accuracy_within = OrdinalScorer("accuracy_within")
linear_weighted_kappa = OrdinalScorer("linear_weighted_kappa")
quadratic_weighted_kappa = OrdinalScorer("quadratic_weighted_kappa")
kendall_tau = OrdinalScorer("kendall_tau")
spearman = OrdinalScorer("spearman")
concordance_index = OrdinalScorer("concordance_index")
minimum_sensitivity = OrdinalScorer("minimum_sensitivity")
neg_ranked_probability_score = OrdinalScorer("ranked_probability_score")
neg_log_score = OrdinalScorer("log_score")
