"""What is asked of a classifier in the manner of scikit-learn before it gets extended rows.

A row becomes up to K-1 rows, one for each threshold. So a classifier must not divide them itself,
needs leaves of as many times more rows, and is best told that the probability falls with the
threshold. All of this is read off parameters and arguments, never off a class by its name.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import clone, is_classifier
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

# Counts of rows, and sums of curvature over rows, below which a tree does not divide.
_LEAF_SIZES = (
    "min_samples_leaf",
    "min_samples_split",
    "min_child_samples",
    "min_data_in_leaf",
    "min_child_weight",
)
_ROUNDS = ("early_stopping_round", "early_stopping_rounds", "n_iter_no_change")
_WEIGHTS_OF_VALIDATION = ("eval_sample_weight", "sample_weight_eval_set")
_MONOTONE = ("monotonic_cst", "monotone_constraints")


def require_answers(estimator: Any) -> None:
    """Refuse what is no classifier with probabilities or scores."""
    name = type(estimator).__name__
    if isinstance(estimator, type):
        raise ValueError(
            f"estimator must be a classifier; got a class: pass {estimator.__name__}()"
        )
    if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise ValueError(f"estimator must be a classifier with fit and get_params; got {name}")
    if not gives_probabilities(estimator):
        if not is_classifier(estimator):
            raise ValueError(f"estimator must be a classifier, as labels y > k are; got {name}")
        if not hasattr(estimator, "decision_function"):
            raise ValueError(
                f"estimator must have predict_proba or decision_function; {name} has neither: try "
                f"CalibratedClassifierCV({name}()) from sklearn.calibration"
            )


def gives_probabilities(estimator: Any) -> bool:
    """Whether it has probabilities of its own, and not only scores.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> gives_probabilities(LinearSVC())
    False
    """
    return hasattr(estimator, "predict_proba")


def positive_probability(classifier: Any, features: Any) -> NDArray[np.float64]:
    """P(label 1) of rows, (n,), by a classifier of 0 and 1; of one with scores, their sigmoid."""
    if not gives_probabilities(classifier):
        scores: NDArray[np.float64] = np.asarray(classifier.decision_function(features))
        return np.asarray(special.expit(scores.astype(np.float64)))
    column = list(classifier.classes_).index(1)
    return np.asarray(classifier.predict_proba(features), dtype=np.float64)[:, column]


def apart(estimator: Any) -> tuple[Any | None, Any]:
    """The steps of a pipeline before the last, if there are any, and the classifier itself."""
    if isinstance(estimator, Pipeline):
        before = estimator[:-1] if len(estimator.steps) > 1 else None
        return before, estimator.steps[-1][1]
    return None, estimator


def is_linear(classifier: Any) -> bool:
    """Whether a threshold can only shift the classifier's score, so that it needs one-hot columns.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> is_linear(LogisticRegression())
    True
    """
    return isinstance(classifier, LinearClassifierMixin)


def takes_monotone(classifier: Any) -> bool:
    """Whether the classifier can be told that a probability never rises with a column."""
    return _monotone_name(classifier) is not None


def _monotone_name(classifier: Any) -> str | None:
    names = classifier.get_params(deep=False)
    for name in _MONOTONE:
        if name in names:
            return name
    # LightGBM takes it without listing it.
    return "monotone_constraints" if _module(classifier) == "lightgbm" else None


def _module(classifier: Any) -> str:
    return type(classifier).__module__.split(".")[0]


def is_unboosted(classifier: Any) -> bool:
    """Whether it is one of scikit-learn's trees or forests.

    Under a constraint they refuse missing cells, and their leaves are clipped to what lies between
    their neighbours instead of being mended by later trees.
    """
    names = classifier.get_params(deep=False)
    return "monotonic_cst" in names and "min_samples_split" in names


def divides_rows(classifier: Any) -> bool:
    """Whether a fit holds some of its rows back or crosses them, and cannot be given others.

    Copies of one row would then stand on both sides.

    Examples
    --------
    >>> from sklearn.neural_network import MLPClassifier
    >>> divides_rows(MLPClassifier(early_stopping=True)), divides_rows(MLPClassifier())
    (True, False)
    """
    names = classifier.get_params(deep=False)
    if "cv" in names and names["cv"] != "prefit":
        return True
    if has_fit_parameter(classifier, "X_val") or has_fit_parameter(classifier, "eval_set"):
        return False
    if "early_stopping" in names:
        return names["early_stopping"] is True
    return names.get("n_iter_no_change") is not None


def wants_validation(classifier: Any) -> bool:
    """Whether the fit stops early on validation rows that it is given."""
    names = classifier.get_params(deep=False)
    if has_fit_parameter(classifier, "eval_set"):
        return any(names.get(name) for name in _ROUNDS)
    return has_fit_parameter(classifier, "X_val") and names.get("early_stopping") is True


def validation_share(classifier: Any) -> float:
    """The share of rows to hold back for early stopping, as the classifier has it or 0.15."""
    share = classifier.get_params(deep=False).get("validation_fraction")
    return float(share) if isinstance(share, float) and 0 < share < 1 else 0.15


def fit_arguments(
    classifier: Any,
    weight: NDArray[np.float64] | None,
    validation: tuple[Any, NDArray[np.int64], NDArray[np.float64] | None] | None,
) -> dict[str, Any]:
    """The keyword arguments of a fit with these weights and these validation rows."""
    arguments: dict[str, Any] = {}
    if weight is not None:
        if not has_fit_parameter(classifier, "sample_weight"):
            raise ValueError(
                f"weights need a classifier whose fit takes sample_weight; "
                f"{type(classifier).__name__} takes none: choose another, or leave the weights out"
            )
        arguments["sample_weight"] = weight
    if validation is None or not wants_validation(classifier):
        return arguments
    features, labels, weights = validation
    if has_fit_parameter(classifier, "X_val"):
        arguments |= {"X_val": features, "y_val": labels}
        return arguments if weights is None else arguments | {"sample_weight_val": weights}
    if has_fit_parameter(classifier, "eval_X"):  # LightGBM's newer names
        arguments |= {"eval_X": features, "eval_y": labels}
    else:
        arguments["eval_set"] = [(features, labels)]
    for name in _WEIGHTS_OF_VALIDATION:
        if weights is not None and has_fit_parameter(classifier, name):
            arguments[name] = [weights]
    if _module(classifier) == "xgboost":
        arguments["verbose"] = False  # it prints every round of a validation set
    return arguments


def for_extended_rows(
    classifier: Any,
    *,
    copies: float,
    threshold_columns: int,
    num_columns: int,
    column_names: list[Any] | None,
    falls: bool,
    validation: bool,
) -> Any:
    """A clone whose parameters suit rows that are there `copies` times on average.

    Parameters
    ----------
    classifier : classifier
    copies : float
    threshold_columns : int
        How many columns stand for the threshold, behind all others.
    num_columns : int
        How many other columns there are.
    column_names : list, optional
        All columns, if they have names.
    falls : bool
        Whether the probability is to fall with the threshold, which then is one column.
    validation : bool
        Whether the fit will be given validation rows.
    """
    changed = clone(classifier)
    names = changed.get_params(deep=False)
    new: dict[str, Any] = {}
    for name in _LEAF_SIZES:
        value = names.get(name)
        if value is None and name == "min_child_weight" and name in names:
            value = 1.0  # what XGBoost takes for nothing said
        if isinstance(value, int) and not isinstance(value, bool):
            new[name] = math.ceil(value * copies)
        elif isinstance(value, float) and name == "min_child_weight":
            new[name] = value * copies  # elsewhere a real number is a share of the rows
    if names.get("early_stopping") == "auto":
        new["early_stopping"] = validation and has_fit_parameter(changed, "X_val")
    mask = names.get("categorical_features")
    if mask is not None and not isinstance(mask, str):
        flags: NDArray[Any] = np.asarray(mask)
        if flags.dtype == bool:
            new["categorical_features"] = np.append(flags, [False] * threshold_columns)
    constraint = _monotone_name(changed)
    if constraint is not None:
        constraints = names.get(constraint)
        if falls or constraints is not None:
            constraints = [0] * num_columns if constraints is None else constraints
            signs = [-1 if falls else 0] * threshold_columns
            new[constraint] = _with_threshold(constraints, signs, column_names)
    return changed.set_params(**new)


def _with_threshold(constraints: Any, signs: list[int], column_names: list[Any] | None) -> Any:
    """The user's constraints on columns of their own, and the threshold's behind them."""
    if isinstance(constraints, str):
        constraints = [int(part) for part in constraints.strip("()[] ").split(",") if part.strip()]
    if isinstance(constraints, dict):
        if column_names is None:
            raise ValueError(
                f"constraints by name need columns with names; got {constraints!r} for an array: "
                f"pass a DataFrame, or a list with a sign for each column"
            )
        return {**constraints, **dict(zip(column_names[-len(signs) :], signs, strict=True))}
    return [*constraints, *signs]
