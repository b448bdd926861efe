"""Output layers: from features (..., in_features) to a method's logits (..., J)."""

from echelon.heads.dense import DenseHead
from echelon.heads.forest import ForestHead
from echelon.heads.layers import (
    CutpointHead,
    LinearHead,
    MarginHead,
    RegressionHead,
    ScoreHead,
    SharedWeightHead,
    UnimodalHead,
)

__all__ = [
    "CutpointHead",
    "DenseHead",
    "ForestHead",
    "LinearHead",
    "MarginHead",
    "RegressionHead",
    "ScoreHead",
    "SharedWeightHead",
    "UnimodalHead",
]
