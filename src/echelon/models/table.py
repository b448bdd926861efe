"""The models that there are: a row says all that the rest of the program must know of one."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class ModelRow:
    """A kind of model.

    Parameters
    ----------
    name : str
        As a file and the command line name it.
    summary : str
        What it is, in one sentence.
    place : str
        The module and the class, "module:Class", imported when it is needed.
    uses_validation : bool
        Whether validation rows choose anything in its fit.
    saves, exports : bool
        Whether it can be saved, and exported as ONNX.
    has_method : bool
        Whether a method of ``echelon.METHODS`` is one of its parameters.
    is_named : bool
        Whether a name is enough to make one; a blend needs its models.
    tables_only : bool
        Whether it reads numbers, dates and categories and nothing else.
    streams : bool
        Whether it is fitted on a source without reading it into memory.
    """

    name: str
    summary: str
    place: str
    uses_validation: bool = True
    saves: bool = True
    exports: bool = True
    has_method: bool = False
    tables_only: bool = False
    is_named: bool = True
    streams: bool = False


MODELS: Mapping[str, ModelRow] = {
    row.name: row
    for row in (
        ModelRow(
            "network",
            "A neural network on tables, texts and images, trained by any method.",
            "echelon.models.network:OrdinalClassifier",
            has_method=True,
            streams=True,
        ),
        ModelRow(
            "boosting",
            "Gradient-boosted trees on all thresholds at once.",
            "echelon.models.boosting:OrdinalBoosting",
            tables_only=True,
            streams=True,
        ),
        ModelRow(
            "cumulative_link",
            "The exact proportional-odds model, linear in the columns.",
            "echelon.models.likelihood:CumulativeLinkModel",
            uses_validation=False,
            tables_only=True,
            streams=True,
        ),
        ModelRow(
            "svm",
            "A kernel machine with large margins among cutpoints (SVORIM, SVOREX, RED-SVM).",
            "echelon.models.margin:OrdinalSVM",
            tables_only=True,
        ),
        ModelRow(
            "prank",
            "A perceptron with ordered cutpoints, which also learns row by row.",
            "echelon.models.perceptron:PRank",
            tables_only=True,
        ),
        ModelRow(
            "neighbors",
            "The median of the nearest rows by a metric that was learnt from the ranks.",
            "echelon.models.neighbors:MetricNeighbors",
            exports=False,
            tables_only=True,
        ),
        ModelRow(
            "blend",
            "A mixture of models, weighed by their curves of rows they had not seen.",
            "echelon.models.blend:OrdinalBlend",
            uses_validation=False,
            is_named=False,
        ),
        ModelRow(
            "auto",
            "What to take when nothing is known: several models within a time limit, blended.",
            "echelon.models.blend:AutoOrdinal",
            uses_validation=False,
        ),
        ModelRow(
            "reduction",
            "Any classifier of scikit-learn on the binary tasks of a method.",
            "echelon.models.reduction:OrdinalReduction",
            uses_validation=False,
            exports=False,
            tables_only=True,
        ),
    )
}
"""The models by name, each with its summary and its traits.

Examples
--------
>>> MODELS["boosting"].summary
'Gradient-boosted trees on all thresholds at once.'
>>> [name for name, row in MODELS.items() if not row.exports]
['neighbors', 'reduction']
"""


def model_class(name: str) -> Any:
    """The class of a model by its name.

    Examples
    --------
    >>> model_class("network").__name__
    'OrdinalClassifier'
    """
    if name not in MODELS:
        raise ValueError(f"model must be one of {', '.join(MODELS)}; got {name!r}")
    module, _, attribute = MODELS[name].place.partition(":")
    return getattr(import_module(module), attribute)
