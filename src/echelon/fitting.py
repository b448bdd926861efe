"""What a fit is made of: rows with their ranks and weights, split and counted."""

import hashlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from echelon.data.images import OnBroken, find_broken
from echelon.data.labels import Labels
from echelon.data.splits import hold_out
from echelon.data.tables import RawTable, TableSchema
from echelon.prediction import require_same_length
from echelon.training.batches import Rows
from echelon.training.recipes import Settings

_LISTED = 3


class Part(NamedTuple):
    """Rows, their ranks (n,) and weights (n,)."""

    table: RawTable
    ranks: NDArray[np.int64]
    weight: NDArray[np.float64]

    def rows(self, selected: Any) -> "Part":
        """Some of the rows."""
        return Part(self.table.rows(selected), self.ranks[selected], self.weight[selected])


def given_part(
    schema: TableSchema,
    labels: Labels,
    table: Any,
    y: Any,
    class_weight: NDArray[np.float64] | None,
    on_broken: OnBroken,
) -> Part:
    """Validation rows that were given, each of the weight of its class."""
    if y is None:
        raise ValueError("y_val must hold the labels of X_val, and is None; pass both or neither")
    read, ranks = schema.read(table), labels.to_ranks(y)
    require_same_length(len(read), len(ranks), "y_val")
    weight = row_weights(None, class_weight, ranks)
    part = Part(read, ranks, np.ones(len(ranks), dtype=np.float64) if weight is None else weight)
    return without_broken(part, None, on_broken)[0]


def class_weights(
    class_weight: Mapping[Any, float] | str | None,
    sample_weight: NDArray[np.float64] | None,
    ranks: NDArray[np.int64],
    labels: Labels,
) -> NDArray[np.float64] | None:
    """The weight of each class, (K,), as the parameter `class_weight` says; None where all are 1.

    ``"balanced"`` gives every class that occurs the same share of the weight of all rows.
    """
    if class_weight is None:
        return None
    per_class = np.ones(labels.num_classes)
    if isinstance(class_weight, Mapping):
        for label, value in class_weight.items():
            per_class[labels.to_ranks([label])[0]] = _checked_class_weight(label, value)
        if not per_class[np.unique(ranks)].any():
            raise ValueError("class_weight is 0 for every class that occurs: nothing would count")
    elif isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.bincount(ranks, weights=sample_weight, minlength=labels.num_classes)
        present = counts > 0
        per_class[present] = counts.sum() / (present.sum() * counts[present])
    else:
        names, example = labels.classes.tolist(), {labels.classes.tolist()[0]: 2.0}
        if isinstance(class_weight, (list, tuple)) and len(class_weight) == len(names):
            example = dict(zip(names, class_weight, strict=True))
        raise ValueError(
            f"class_weight must be 'balanced' or a mapping from label to weight, such as "
            f"{example}; got {class_weight!r}"
        )
    return per_class


def _checked_class_weight(label: Any, value: Any) -> float:
    if isinstance(value, (int, float, np.number)) and np.isfinite(value) and value >= 0:
        return float(value)
    raise ValueError(
        f"class_weight must be a finite number of at least 0 for every label; got {value!r} for "
        f"{label!r}"
    )


def row_weights(
    sample_weight: NDArray[np.float64] | None,
    per_class: NDArray[np.float64] | None,
    ranks: NDArray[np.int64],
) -> NDArray[np.float64] | None:
    """The weight of each row, (n,): its own times that of its class; None where all count alike."""
    if per_class is None:
        return sample_weight
    of_class: NDArray[np.float64] = per_class[ranks]
    return of_class if sample_weight is None else sample_weight * of_class


def without_broken(
    part: Part, groups: NDArray[Any] | None, on_broken: OnBroken
) -> tuple[Part, NDArray[Any] | None, dict[int, str]]:
    """The rows, and their groups, whose images can be read, and why the others cannot.

    With ``on_broken="raise"`` nothing is read yet: the first broken image raises when it is needed.
    """
    if on_broken not in ("raise", "skip"):
        raise ValueError(f"on_broken must be 'raise' or 'skip'; got {on_broken!r}")
    if on_broken == "raise" or part.table.images is None:
        return part, groups, {}
    broken = find_broken(part.table.images)
    if not broken:
        return part, groups, {}
    reasons = "; ".join(list(broken.values())[:_LISTED])
    if len(broken) == len(part.ranks):
        raise ValueError(f"none of the {len(broken)} images can be read: {reasons}")
    warnings.warn(
        f"{len(broken)} of {len(part.ranks)} rows are left out, as their images cannot be read: "
        f"{reasons}" + ("; .." if len(broken) > _LISTED else ""),
        stacklevel=3,
    )
    kept = np.ones(len(part.ranks), dtype=bool)
    kept[list(broken)] = False
    return part.rows(kept), None if groups is None else groups[kept], broken


def split_rows(
    whole: Part, held: Part | None, fraction: float, groups: Any, seed: int
) -> tuple[Part, Part | None]:
    """What is trained on, and what chooses the epoch: rows that are given, or held out."""
    if held is not None:
        return whole, held
    if fraction == 0:
        return whole, None
    marked = hold_out(
        whole.table, whole.ranks, fraction, groups=groups, generator=np.random.default_rng(seed)
    )
    validation = whole.rows(marked)
    if not validation.weight.any():
        validation = validation._replace(weight=np.ones_like(validation.weight))
    return whole.rows(~marked), validation


def memory_line(table: RawTable, rows: Rows, network: nn.Module) -> str:
    """What a fit holds at once: the table, its features, and the network with its optimiser."""
    raw = table.numbers.nbytes + table.codes.nbytes
    features = rows.features if isinstance(rows.features, Tensor) else rows.features.table
    held = sum(t.nbytes for t in (features, rows.ranks, rows.weight) if t is not None)
    # parameters, gradients, two moments, and the best epoch
    parameters = 5 * sum(parameter.nbytes for parameter in network.parameters())
    total = (2 * raw + held + parameters) / 2**20  # the split copies the table once
    what = [f"{len(table):,} rows"]
    if features is not None:
        what.append(f"{features.shape[1]} features")
    what += [kind for kind in ("texts", "images") if getattr(table, kind) is not None]
    return f"{', '.join(what)}: about {total:,.0f} MiB"


def fingerprint(method: str, settings: Settings, rows: Rows, seed: int) -> str:
    """Of everything that decides how a run goes."""
    document = json.dumps([method, asdict(settings), seed], default=str, sort_keys=True)
    digest = hashlib.sha256(document.encode())
    if isinstance(rows.features, Tensor):
        digest.update(rows.features.numpy().tobytes())
    else:
        digest.update(rows.features.digest())
    digest.update(rows.ranks.numpy().tobytes())
    if rows.weight is not None:
        digest.update(rows.weight.numpy().tobytes())
    return digest.hexdigest()
