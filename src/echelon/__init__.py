"""Ordinal regression: predicting labels that have an order but no known distances.

Every model is an estimator in the manner of scikit-learn, and gives a distribution over the labels
of each row, from which labels, probabilities and intervals are read:

>>> import echelon
>>> data = echelon.data.make_friedman(600, num_classes=5)  # or a DataFrame and labels of your own
>>> X, y = data.features, data.ranks
>>> model = echelon.OrdinalBoosting(random_state=0).fit(X[:400], y[:400])
>>> model.predict(X[400:]).shape, model.predict_proba(X[400:]).shape
((200,), (200, 5))
>>> model.conformalize(X[400:], y[400:]).predict_interval(X[:3], coverage=0.9).shape
(3, 2)

Models
    AutoOrdinal (takes several and blends them), OrdinalBoosting (trees), OrdinalClassifier (a
    network on tables, texts and images), CumulativeLinkModel (proportional odds, with its
    statistics), OrdinalReduction (any classifier of scikit-learn), OrdinalSVM, PRank,
    MetricNeighbors, OrdinalBlend. `load` opens a saved one, `cross_val_curve` predicts every row
    by a model that has not seen it, `tune` searches settings (and gives a Tuned), `as_ranks` turns
    labels into ranks, MODELS lists the models.
In a PyTorch loop
    `method("corn", num_classes=5)` gives a head, a loss and a curve, `convert` puts such a head on
    a classifier, OrdinalLoss is the loss as a module; METHODS lists the methods.
The rooms
    `echelon.functional`: the losses, and how logits become log-probabilities, as pure functions.
    `echelon.heads`: output layers.
    `echelon.evaluation`: metrics, scorers for scikit-learn, scores that are collected in parts.
    `echelon.data`: tables that stay in their files (`scan`), and generated data whose best possible
    predictor is known.
RankCurve
    The distribution over ranks that everything ends in: median, mean, mode, costs, crossings.

On the command line: ``echelon --help``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from echelon._version import __version__

if TYPE_CHECKING:
    from echelon import data, evaluation, functional, heads
    from echelon.curve import RankCurve
    from echelon.data.labels import as_ranks
    from echelon.experiments.tuned import Tuned, tune
    from echelon.methods import METHODS, Method, method
    from echelon.models.blend import AutoOrdinal, OrdinalBlend
    from echelon.models.boosting import OrdinalBoosting
    from echelon.models.cross_validation import cross_val_curve
    from echelon.models.likelihood import CumulativeLinkModel
    from echelon.models.loading import load
    from echelon.models.margin import OrdinalSVM
    from echelon.models.neighbors import MetricNeighbors
    from echelon.models.network import OrdinalClassifier
    from echelon.models.perceptron import PRank
    from echelon.models.reduction import OrdinalReduction
    from echelon.models.table import MODELS
    from echelon.networks.conversion import convert
    from echelon.networks.converted import OrdinalModel
    from echelon.networks.criterion import OrdinalLoss

__all__ = [
    "METHODS",
    "MODELS",
    "AutoOrdinal",
    "CumulativeLinkModel",
    "Method",
    "MetricNeighbors",
    "OrdinalBlend",
    "OrdinalBoosting",
    "OrdinalClassifier",
    "OrdinalLoss",
    "OrdinalModel",
    "OrdinalReduction",
    "OrdinalSVM",
    "PRank",
    "RankCurve",
    "Tuned",
    "__version__",
    "as_ranks",
    "convert",
    "cross_val_curve",
    "data",
    "evaluation",
    "functional",
    "heads",
    "load",
    "method",
    "tune",
]

# Everything is imported when it is first used, so that `import echelon` costs nothing.
_ROOMS = ("data", "evaluation", "functional", "heads")
_PLACES = {
    "METHODS": "echelon.methods",
    "MODELS": "echelon.models.table",
    "AutoOrdinal": "echelon.models.blend",
    "CumulativeLinkModel": "echelon.models.likelihood",
    "Method": "echelon.methods",
    "MetricNeighbors": "echelon.models.neighbors",
    "OrdinalBlend": "echelon.models.blend",
    "OrdinalBoosting": "echelon.models.boosting",
    "OrdinalClassifier": "echelon.models.network",
    "OrdinalLoss": "echelon.networks.criterion",
    "OrdinalModel": "echelon.networks.converted",
    "OrdinalReduction": "echelon.models.reduction",
    "OrdinalSVM": "echelon.models.margin",
    "PRank": "echelon.models.perceptron",
    "RankCurve": "echelon.curve",
    "Tuned": "echelon.experiments.tuned",
    "as_ranks": "echelon.data.labels",
    "convert": "echelon.networks.conversion",
    "cross_val_curve": "echelon.models.cross_validation",
    "load": "echelon.models.loading",
    "method": "echelon.methods",
    "tune": "echelon.experiments.tuned",
}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"echelon.{name}")
    if name in _PLACES:
        value = getattr(import_module(_PLACES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'echelon' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
