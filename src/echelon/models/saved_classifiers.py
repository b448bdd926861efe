"""Fitted binary classifiers of other libraries as data, and back without running their code.

A linear model is its coefficients, and LightGBM's trees are LightGBM's own text, which is read with
suspicion before LightGBM gets it. Anything else would have to be pickled, which may run whatever
its author likes when it is opened: it is refused.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special
from torch import Tensor

from echelon.models.classifiers import is_linear, positive_probability
from echelon.models.tree_text import check_plain_text, without_parameters

Floats = NDArray[np.float64]
_KINDS = ("constant", "linear", "lightgbm")
_ROUNDING = 1e-9


class SavedLinear:
    """A logistic model of two classes: the sigmoid of a score.

    Parameters
    ----------
    coefficients : array, shape (1, d)
    intercept : float
    """

    classes_ = np.array([0, 1])

    def __init__(self, coefficients: Floats, intercept: float) -> None:
        self.coefficients, self.intercept = coefficients, intercept

    def predict_proba(self, features: Any) -> Floats:
        """P(label 0) and P(label 1) of features (n, d), (n, 2)."""
        score = (np.asarray(features) @ self.coefficients.T)[:, 0] + self.intercept
        positive = special.expit(score)
        return np.column_stack([1 - positive, positive])


class SavedTrees:
    """Trees of LightGBM for two classes.

    Parameters
    ----------
    text : str
        As :func:`echelon.models.tree_text.check_plain_text` demands it.
    """

    classes_ = np.array([0, 1])

    def __init__(self, text: str) -> None:
        import lightgbm

        self.text = text
        self._booster = lightgbm.Booster(model_str=text)

    def __deepcopy__(self, memo: Any) -> "SavedTrees":
        return SavedTrees(self.text)

    def predict_proba(self, features: Any) -> Floats:
        """P(label 0) and P(label 1) of features (n, d), (n, 2)."""
        positive = np.asarray(self._booster.predict(np.asarray(features), num_threads=1))
        return np.column_stack([1.0 - positive, positive])


def describe_classifier(classifier: Any, num_columns: int) -> tuple[dict[str, Any], Tensor | None]:
    """What :func:`rebuild_classifier` takes: values of JSON, and the numbers of a linear model.

    Parameters
    ----------
    classifier : fitted classifier, or the probability of label 1
    num_columns : int
        d.

    Raises
    ------
    ValueError
        Where a classifier cannot be saved as data.

    Examples
    --------
    >>> describe_classifier(0.25, 3)
    ({'kind': 'constant', 'probability': 0.25}, None)
    """
    if isinstance(classifier, float):
        return {"kind": "constant", "probability": classifier}, None
    linear = _as_linear(classifier, num_columns)
    if linear is not None:
        numbers = np.append(linear.coefficients[0], linear.intercept)
        return {"kind": "linear"}, torch.from_numpy(numbers)
    text = _as_text(classifier, num_columns)
    if text is not None:
        return {"kind": "lightgbm", "trees": text}, None
    raise ValueError(
        f"a model of {type(classifier).__name__} cannot be saved, as reading it back "
        f"would have to run code of its file; take a linear model such as LogisticRegression or "
        f"SGDClassifier(loss='log_loss'), LightGBM's LGBMClassifier, or an OrdinalBoosting, or fit "
        f"this one again where it is needed"
    )


def rebuild_classifier(described: Any, numbers: Tensor | None, num_columns: int) -> Any:
    """What :func:`describe_classifier` described; nothing of it is trusted."""
    if not isinstance(described, Mapping) or described.get("kind") not in _KINDS:
        raise ValueError(f"a classifier must be of a kind in {', '.join(_KINDS)}")
    kind, rest = described["kind"], set(described) - {"kind"}
    expected = {"constant": {"probability"}, "linear": set(), "lightgbm": {"trees"}}[kind]
    if rest != expected or (numbers is None) != (kind != "linear"):
        raise ValueError(f"a classifier of the kind {kind} is not described so")
    if kind == "constant":
        probability = described["probability"]
        if type(probability) is not float or not 0 < probability < 1:
            raise ValueError("the probability of a classifier must lie between 0 and 1")
        return probability
    if kind == "lightgbm":
        if type(described["trees"]) is not str:
            raise ValueError("the trees of a classifier must be a text")
        check_plain_text(described["trees"], num_columns)
        return SavedTrees(described["trees"])
    assert numbers is not None
    if numbers.dtype != torch.float64 or numbers.shape != (num_columns + 1,):
        raise ValueError(f"a linear classifier must have {num_columns} coefficients, and one more")
    values = numbers.numpy()
    if not np.isfinite(values).all():
        raise ValueError("the coefficients of a classifier must be finite")
    return SavedLinear(values[None, :-1].copy(), float(values[-1]))


def _as_linear(classifier: Any, num_columns: int) -> SavedLinear | None:
    """The same as a linear model, if it is one whose probabilities are the sigmoid of its score."""
    if isinstance(classifier, SavedLinear):
        return classifier
    if not is_linear(classifier) or list(classifier.classes_) != [0, 1]:
        return None
    coefficients: Floats = np.asarray(classifier.coef_, dtype=np.float64)
    if coefficients.shape != (1, num_columns):
        return None
    intercept = np.broadcast_to(np.asarray(classifier.intercept_, dtype=np.float64), (1,))
    linear = SavedLinear(coefficients, float(intercept[0]))
    rows = np.random.default_rng(0).normal(size=(32, num_columns))
    away = np.abs(linear.predict_proba(rows)[:, 1] - positive_probability(classifier, rows)).max()
    return linear if math.isfinite(away) and away < _ROUNDING else None


def _as_text(classifier: Any, num_columns: int) -> str | None:
    """The trees of LightGBM's classifier, if it is that."""
    if isinstance(classifier, SavedTrees):
        return classifier.text
    if type(classifier).__module__.split(".")[0] != "lightgbm":
        return None
    text = without_parameters(classifier.booster_.model_to_string())
    try:
        check_plain_text(text, num_columns)
    except ValueError:  # another objective, linear trees, a mean of trees
        return None
    return text
