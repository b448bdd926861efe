"""Pure tensor functions: the losses, and how logits become log-probabilities.

Every loss takes `logits` (..., J) and `ranks` (...), integers from 0 to K-1; leading dimensions may
be a batch, a sequence, a dense map. What all of them share, but for :func:`cnnpor_loss`,
:func:`ranking_loss` and :func:`diffsort_loss`, which couple the rows of a batch and take neither
extra dimensions nor soft labels nor ``reduction="none"``:

`ranks`
    Instead of integers (...), floats (..., K) are soft labels, a distribution over the ranks for
    each row: the loss is then the expected loss, and a row counts as its expected count.
`sample_weight` (...)
    What each row counts for, not below 0. A weight of 0 is the same as leaving the row out,
    whatever its logits.
`class_weight` (K,)
    The same by rank; both may be given.
`ignore_index`
    Rows with this value in place of a rank count for nothing, whatever their logits are.
`reduction`
    ``"mean"`` divides the weighted sum by the weight of what was summed and is 0 where nothing
    counts; ``"sum"`` does not divide; ``"none"`` gives the weighted loss of each row, (...).
    :func:`loss_parts` gives the sum and the count apart.
`dim`
    The dimension of the logits that has the size J, and of soft labels that has the size K: by
    default the last, for dense outputs (N, J, height, width) 1, as in torch's own losses.
`normaliser`, of the losses on binary tasks
    What ``"mean"`` divides by: ``"pairs"``, the active (row, task) pairs, as the CORN paper's
    formula does; ``"rows"``, the rows, the scale of the CORAL and OR-NN papers; ``"per_task"``, a
    mean within each task and then over all tasks, as the code of the CORN paper's MLP does.
`task_weight` (K-1,), of the losses on binary tasks
    The importance of each task; it counts in ``"pairs"`` and not in ``"rows"``.

Half-precision logits are computed in float32. A rank outside 0..K-1 raises a ValueError; in eager
code on an accelerator that check waits for the device once, in compiled code it never does.
"""

from echelon.functional._binary import (
    coral_loss,
    corn_log_probabilities,
    corn_loss,
    corn_without_subsets_loss,
    every_task,
    margin_loss,
    margin_tasks,
    ornn_loss,
    reached_tasks,
    sorted_log_probabilities,
)
from echelon.functional._constraints import cnnpor_loss
from echelon.functional._cumulative import (
    Link,
    clm_log_probabilities,
    clm_loss,
    link_quantile,
    regression_log_probabilities,
    regression_loss,
)
from echelon.functional._forest import (
    LeafUpdate,
    Leaves,
    forest_log_probabilities,
    forest_loss,
    forest_raw_exceedance,
    grown_shares,
    leaf_routes,
    log_mixture,
    num_forest_logits,
    updates_leaves,
)
from echelon.functional._labels import LossParts, Weights, loss_parts, with_ranks_last
from echelon.functional._pairs import ranking_loss
from echelon.functional._precision import as_float, without_autocast
from echelon.functional._scores import margin_log_probabilities, score_log_probabilities
from echelon.functional._softmax import (
    ce_loss,
    oll_loss,
    rps_loss,
    softmax_log_probabilities,
    sord_loss,
)
from echelon.functional._sorting import diffsort_loss
from echelon.functional._unimodal import (
    UnimodalForm,
    num_unimodal_logits,
    unimodal_log_probabilities,
    unimodal_loss,
)

__all__ = [
    "LeafUpdate",
    "Leaves",
    "Link",
    "LossParts",
    "UnimodalForm",
    "Weights",
    "as_float",
    "ce_loss",
    "clm_log_probabilities",
    "clm_loss",
    "cnnpor_loss",
    "coral_loss",
    "corn_log_probabilities",
    "corn_loss",
    "corn_without_subsets_loss",
    "diffsort_loss",
    "every_task",
    "forest_log_probabilities",
    "forest_loss",
    "forest_raw_exceedance",
    "grown_shares",
    "leaf_routes",
    "link_quantile",
    "log_mixture",
    "loss_parts",
    "margin_log_probabilities",
    "margin_loss",
    "margin_tasks",
    "num_forest_logits",
    "num_unimodal_logits",
    "oll_loss",
    "ornn_loss",
    "ranking_loss",
    "reached_tasks",
    "regression_log_probabilities",
    "regression_loss",
    "rps_loss",
    "score_log_probabilities",
    "softmax_log_probabilities",
    "sord_loss",
    "sorted_log_probabilities",
    "unimodal_log_probabilities",
    "unimodal_loss",
    "updates_leaves",
    "with_ranks_last",
    "without_autocast",
]
