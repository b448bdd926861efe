"""The table of methods: for each, the head it needs, its loss, and how logits become the curve."""

import difflib
import inspect
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from echelon import functional as f
from echelon.curve import RankCurve
from echelon.functional import (
    Weights,
    as_float,
    every_task,
    margin_tasks,
    reached_tasks,
    with_ranks_last,
)
from echelon.heads import (
    CutpointHead,
    ForestHead,
    LinearHead,
    MarginHead,
    RegressionHead,
    ScoreHead,
    SharedWeightHead,
    UnimodalHead,
)

_SHARED = {"logits", "ranks", "sample_weight", "class_weight", "task_weight", "ignore_index"}
_NOT_OPTIONS = _SHARED | {"reduction", "num_classes", "dim"}


@dataclass(frozen=True)
class MethodSpec:
    """What the table knows of a method, whatever the number of classes.

    `num_logits` tells J from K, and from an option where it takes one. `loss` and
    `log_probabilities` are functions of :mod:`echelon.functional`; their keyword arguments beyond
    the shared ones are the method's options. The traits:

    `can_cross`
        The raw curve may contradict itself, and is repaired by sorting.
    `crosses_with`
        An option and its value with which it may, where it cannot by default.
    `updates_with`
        Tells from the options whether the head updates itself, which it can on one device alone.
    `uses_distances`
        The loss knows how far ranks are from each other, not only their order.
    `couples_rows`
        The loss compares the rows of a batch, so that none has a loss of its own.
    `cuts_lists`
        Such a loss sees a row only beside those that stand next to it in the batch.
    `borrows_probabilities`
        The loss gives no probabilities; the curve is fitted beside it by a term without a value.
    `is_unimodal`
        Every curve rises to its mode and falls after it.

    `cost` is the work of a loss on N rows of K ranks (that of a head is its own), and `cite` whom
    to name. `raw_exceedance` gives P(y > k) of logits as they are, where a curve may cross.
    `active_tasks`, of a loss on K-1 binary tasks, gives from ranks (...) and K-1 which tasks each
    row trains, (..., K-1). `even_bias` gives from K the biases (J,) of a linear head at which all
    ranks are equally likely, where those around 0 are not such.
    """

    name: str
    summary: str
    head: Callable[..., nn.Module]
    loss: Callable[..., Tensor]
    log_probabilities: Callable[..., Tensor]
    num_logits: Callable[..., int]
    cite: str
    cost: str = "N K"
    can_cross: bool = False
    crosses_with: tuple[str, Any] | None = None
    updates_with: Callable[..., bool] | None = None
    raw_exceedance: Callable[[Tensor], Tensor] = torch.sigmoid
    uses_distances: bool = False
    couples_rows: bool = False
    borrows_probabilities: bool = False
    cuts_lists: bool = False
    is_unimodal: bool = False
    active_tasks: Callable[..., Tensor] | None = None
    even_bias: Callable[[int], Tensor] | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Names and defaults of the method's options."""
        parameters = inspect.signature(self.loss).parameters
        return {
            name: parameter.default
            for name, parameter in parameters.items()
            if name not in _NOT_OPTIONS
        }

    @property
    def promises(self) -> dict[str, bool]:
        """What the method promises with its default options, in words that a table can head."""
        return {
            "consistent": not self.can_cross,
            "unimodal": self.is_unimodal,
            "couples rows": self.couples_rows,
            "uses distances": self.uses_distances,
            "own probabilities": not self.borrows_probabilities,
        }

    @property
    def has_binary_tasks(self) -> bool:
        """Whether the loss is one on K-1 binary tasks, which may be weighted."""
        return self.active_tasks is not None


def _linear(num_logits: Callable[[int], int]) -> Callable[..., nn.Module]:
    def head(in_features: int, num_classes: int, **factory: Any) -> nn.Module:
        return LinearHead(in_features, num_logits(num_classes), **factory)

    return head


def _per_class(num_classes: int) -> int:
    return num_classes


def _per_task(num_classes: int) -> int:
    return num_classes - 1


def _value_and_spread(num_classes: int) -> int:
    return 2


def _even_odds(num_classes: int) -> Tensor:
    """Log-odds of y > k where all ranks are equally likely, (K-1,)."""
    ranks_up_to = torch.arange(1, num_classes, dtype=torch.float64)
    return torch.log((num_classes - ranks_up_to) / ranks_up_to)


def _even_odds_of_reached(num_classes: int) -> Tensor:
    """Log-odds of y > k among the rows with y >= k, where all ranks are equally likely, (K-1,)."""
    return torch.log(torch.arange(num_classes - 1, 0, -1, dtype=torch.float64))


_softmax = partial(
    MethodSpec,
    head=_linear(_per_class),
    log_probabilities=f.softmax_log_probabilities,
    num_logits=_per_class,
)
_binary = partial(
    MethodSpec, head=_linear(_per_task), num_logits=_per_task, active_tasks=every_task
)

_score = partial(
    MethodSpec,
    head=ScoreHead,
    log_probabilities=f.score_log_probabilities,
    num_logits=_per_class,
    couples_rows=True,
    borrows_probabilities=True,
)

METHODS: Mapping[str, MethodSpec] = {
    spec.name: spec
    for spec in (
        _softmax("ce", "cross-entropy, blind to the order", loss=f.ce_loss, cite="none needed"),
        _binary(
            "ornn",
            "a binary task per threshold; the curve may contradict itself (Niu et al.)",
            loss=f.ornn_loss,
            cite="Niu et al. 2016",
            log_probabilities=f.sorted_log_probabilities,
            can_cross=True,
            even_bias=_even_odds,
        ),
        _binary(
            "coral",
            "a binary task per threshold with one shared weight (Cao et al.)",
            head=SharedWeightHead,
            loss=f.coral_loss,
            cite="Cao, Mirjalili and Raschka 2020",
            log_probabilities=f.sorted_log_probabilities,
            can_cross=True,
        ),
        _binary(
            "corn",
            "conditional binary tasks and the chain rule (Shi et al.)",
            loss=f.corn_loss,
            cite="Shi, Cao and Raschka 2023",
            log_probabilities=f.corn_log_probabilities,
            active_tasks=reached_tasks,
            even_bias=_even_odds_of_reached,
        ),
        _binary(
            "corn_without_subsets",
            "the ablation of CORN: every row trains every task",
            loss=f.corn_without_subsets_loss,
            cite="Shi, Cao and Raschka 2023",
            log_probabilities=f.corn_log_probabilities,
            even_bias=_even_odds_of_reached,
        ),
        _softmax(
            "sord",
            "cross-entropy against targets softened by distance (Diaz and Marathe)",
            loss=f.sord_loss,
            cite="Diaz and Marathe 2019",
            uses_distances=True,
        ),
        _softmax(
            "cnnpor",
            "cross-entropy plus a pairwise term between neighbouring ranks (Liu et al.)",
            loss=f.cnnpor_loss,
            cite="our form of Liu, Kong and Goh 2018",
            cost="N log N + N K",
            couples_rows=True,
        ),
        MethodSpec(
            "clm",
            "cumulative link model: one score, ordered cutpoints (McCullagh)",
            head=CutpointHead,
            loss=f.clm_loss,
            cite="McCullagh 1980",
            log_probabilities=f.clm_log_probabilities,
            num_logits=_per_task,
        ),
        MethodSpec(
            "regression",
            "squared error on the rank, with a fitted spread",
            head=RegressionHead,
            loss=f.regression_loss,
            cite="none needed",
            cost="N",
            uses_distances=True,
            log_probabilities=f.regression_log_probabilities,
            num_logits=_value_and_spread,
            borrows_probabilities=True,
        ),
        _softmax(
            "rps",
            "softmax trained on the ranked probability score",
            loss=f.rps_loss,
            cite="Epstein 1969",
        ),
        MethodSpec(
            "margin",
            "large margins of one score among ordered cutpoints (Chu and Keerthi)",
            head=MarginHead,
            loss=f.margin_loss,
            cite="Shashua and Levin 2003; Chu and Keerthi 2005; Rennie and Srebro 2005",
            log_probabilities=f.margin_log_probabilities,
            num_logits=_per_class,
            borrows_probabilities=True,
            active_tasks=margin_tasks,
        ),
        _score(
            "ranking",
            "one score that orders the pairs of a batch (Joachims; RankNet; ListNet)",
            loss=f.ranking_loss,
            cite="Joachims 2002; Burges et al. 2005; Cao et al. 2007",
            cost="N log N + N K",
        ),
        _score(
            "diffsort",
            "one score that a differentiable sorting network puts in order (Petersen et al.)",
            loss=f.diffsort_loss,
            cite="Petersen et al. 2021, 2022",
            cost="N n^2 + N K, lists of n",
            cuts_lists=True,
        ),
        _softmax(
            "oll",
            "ordinal log loss: other ranks are pushed away by distance (Castagnos et al.)",
            loss=f.oll_loss,
            cite="Castagnos et al. 2022; Polat et al. 2022",
            uses_distances=True,
        ),
        MethodSpec(
            "unimodal",
            "a distribution with one mode by construction (Cardoso et al.; Beckham and Pal)",
            head=UnimodalHead,
            loss=f.unimodal_loss,
            log_probabilities=f.unimodal_log_probabilities,
            num_logits=f.num_unimodal_logits,
            cite="Cardoso et al. 2025; Beckham and Pal 2017",
            is_unimodal=True,
        ),
        MethodSpec(
            "forest",
            "soft trees whose leaves hold distributions (Zhu et al.)",
            head=ForestHead,
            loss=f.forest_loss,
            log_probabilities=f.forest_log_probabilities,
            num_logits=f.num_forest_logits,
            cite="our form of Zhu et al. 2021; Kontschieder et al. 2015; Shen et al. 2018",
            cost="N K, the head N T 2^D (D + K)",
            crosses_with=("leaves", "bernoulli"),
            updates_with=f.updates_leaves,
            raw_exceedance=f.forest_raw_exceedance,
        ),
    )
}
"""The methods by name, each with what it needs and what it promises.

Examples
--------
>>> METHODS["corn"].summary
'conditional binary tasks and the chain rule (Shi et al.)'
>>> METHODS["clm"].options
{'link': 'logit'}
"""


class Method:
    """A method for a number of classes: its head, its loss and its curve.

    :func:`method` is the shorter way to make one.

    Parameters
    ----------
    name : str
        One of ``echelon.METHODS``.
    num_classes : int
        K, at least 2.
    options : Mapping
        What the method's loss takes beyond the shared arguments.

    Attributes
    ----------
    num_logits : int
        J, the size of the last dimension of the logits.

    Examples
    --------
    >>> corn = Method("corn", 5, {})
    >>> corn.num_logits
    4
    >>> corn == method("corn", num_classes=5)
    True
    """

    def __init__(self, name: str, num_classes: int, options: Mapping[str, Any]) -> None:
        _require_known(name, options)
        try:
            num_classes = operator.index(num_classes)
        except TypeError:
            raise ValueError(f"num_classes must be an integer; got {num_classes!r}") from None
        if num_classes < 2:
            raise ValueError(f"num_classes must be at least 2; got {num_classes}")
        self.name = name
        self.num_classes = num_classes
        self.options = dict(options)
        # Looked up once: signatures are too slow to read at every step.
        shaping = _accepted(self.spec.num_logits, self.options)
        self.num_logits = self.spec.num_logits(num_classes, **shaping)
        given = {**self.options, "num_classes": num_classes}
        self._head_options = _accepted(self.spec.head, self.options)
        self._loss_options = _accepted(self.spec.loss, given)
        self._curve_options = _accepted(self.spec.log_probabilities, given)
        # The loss itself judges the values of the options, before anything is trained.
        zeros = torch.zeros(1, self.num_logits, device="cpu")
        self.loss(zeros, torch.zeros(1, dtype=torch.long, device="cpu"))

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"method({self.name!r}, num_classes={self.num_classes}{options})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Method) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    @property
    def spec(self) -> MethodSpec:
        """The method's row in the table."""
        return METHODS[self.name]

    @property
    def can_cross(self) -> bool:
        """Whether the raw curve may contradict itself, with these options."""
        if self.spec.crosses_with is None:
            return self.spec.can_cross
        option, value = self.spec.crosses_with
        return bool(self.options.get(option, self.spec.options[option]) == value)

    @property
    def needs_one_device(self) -> str | None:
        """Why the rows of a batch must be on one device, or None."""
        if self.spec.couples_rows:
            return "couples the rows of a batch, and pairs across processes would be missed"
        updates = self.spec.updates_with
        if updates is not None and updates(**_accepted(updates, self.options)):
            return "updates its leaves from the rows of one process"
        return None

    def head(
        self,
        in_features: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> nn.Module:
        """A new output layer from features (..., in_features) to logits (..., J).

        Parameters
        ----------
        in_features : int
            How many features the network gives.
        device, dtype : optional
            Where the parameters lie and what numbers they are, as for :class:`torch.nn.Linear`.

        Examples
        --------
        >>> method("corn", num_classes=5).head(16)
        LinearHead(in_features=16, out_features=4, bias=True)
        """
        return self.spec.head(
            in_features, self.num_classes, device=device, dtype=dtype, **self._head_options
        )

    def start_evenly(self, head: nn.Module) -> None:
        """Put the biases of a head where all ranks are equally likely.

        Heads with cutpoints start there by themselves. A linear head of CORN does not: with biases
        of 0 half of the rows end at each rank, so that of forty ranks the upper ones are out of
        reach, and no step of Adam moves a bias by more than the learning rate.

        Parameters
        ----------
        head : nn.Module
            What :meth:`head` gave, or a module that holds several such.

        Examples
        --------
        >>> corn = method("corn", num_classes=5)
        >>> head = corn.head(16)
        >>> corn.start_evenly(head)
        >>> corn.curve(head(torch.zeros(1, 16))).probabilities
        tensor([[0.2000, 0.2000, 0.2000, 0.2000, 0.2000]], grad_fn=<ExpBackward0>)
        """
        if self.spec.even_bias is None:
            return
        bias = self.spec.even_bias(self.num_classes)
        with torch.no_grad():
            for layer in head.modules():
                if isinstance(layer, LinearHead):
                    layer.bias.copy_(bias)

    def loss(
        self,
        logits: Tensor,
        ranks: Tensor,
        *,
        sample_weight: Weights | None = None,
        class_weight: Weights | None = None,
        task_weight: Weights | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
        dim: int = -1,
    ) -> Tensor:
        """The training loss; the arguments are those of :mod:`echelon.functional`.

        Parameters
        ----------
        logits : Tensor, shape (..., J)
            What the method's head gives.
        ranks : Tensor, shape (...) of integers, or (..., K) of floats for soft labels
            The true ranks, 0..K-1, or a distribution over the ranks for each row.
        sample_weight : shape (...), optional
            What each row counts for; without it, each counts alike.
        class_weight : shape (K,), optional
            What the rows of each class count for, times their own weight.
        task_weight : shape (K-1,), optional
            Only for methods with binary tasks.
        ignore_index : int, optional
            The rank of rows that count for nothing, such as -1.
        reduction : {"mean", "sum", "none"}
            The mean, the sum, or the loss of each row.
        dim : int
            The dimension of the logits that has the size J: 1 for (N, J, height, width).

        Examples
        --------
        >>> corn = method("corn", num_classes=5)
        >>> corn.loss(torch.zeros(3, 4), torch.tensor([0, 2, -1]), ignore_index=-1)
        tensor(0.6931)
        """
        logits, ranks = with_ranks_last(logits, ranks, dim)
        return self.spec.loss(
            self._checked(logits),
            ranks,
            sample_weight=sample_weight,
            class_weight=class_weight,
            ignore_index=ignore_index,
            reduction=reduction,
            **self._with_task_weight(task_weight),
        )

    def loss_parts(
        self,
        logits: Tensor,
        ranks: Tensor,
        *,
        sample_weight: Weights | None = None,
        class_weight: Weights | None = None,
        task_weight: Weights | None = None,
        ignore_index: int | None = None,
        weigh_count: bool = True,
        dim: int = -1,
    ) -> f.LossParts:
        """Sum and count of the loss, to be added up over devices or accumulated batches.

        Parameters
        ----------
        logits, ranks, sample_weight, class_weight, task_weight, ignore_index, dim
            As for :meth:`loss`.
        weigh_count : bool
            Whether rows count as much as they weigh; see :func:`echelon.functional.loss_parts`.
        """
        logits, ranks = with_ranks_last(logits, ranks, dim)
        return f.loss_parts(
            self.spec.loss,
            self._checked(logits),
            ranks,
            weigh_count=weigh_count,
            sample_weight=sample_weight,
            class_weight=class_weight,
            ignore_index=ignore_index,
            **self._with_task_weight(task_weight),
        )

    def curve(self, logits: Tensor | NDArray[Any], *, dim: int = -1) -> RankCurve:
        """The distribution over ranks that logits stand for.

        Parameters
        ----------
        logits : Tensor or array, shape (..., J)
            What the method's head gives.
        dim : int
            The dimension of the logits that has the size J: 1 for (N, J, height, width). The
            curve has its ranks last in any case, and one decision for each place (N, height,
            width).

        Examples
        --------
        >>> method("corn", num_classes=5).curve(torch.zeros(2, 4, 8, 8), dim=1).median().shape
        torch.Size([2, 8, 8])
        """
        given = torch.from_numpy(logits) if isinstance(logits, np.ndarray) else logits
        logits = self._checked(with_ranks_last(given, given, dim)[0])
        log_probabilities = self.spec.log_probabilities(logits, **self._curve_options)
        raw = self.spec.raw_exceedance(as_float(logits)) if self.can_cross else None
        return RankCurve(log_probabilities, raw_exceedance=raw)

    def tasks(self, ranks: Tensor) -> tuple[Tensor, Tensor]:
        """The binary tasks of a row: their targets, and which of them the row trains.

        With these any binary classifier can be trained the way the method's loss does it.

        Parameters
        ----------
        ranks : Tensor, shape (...) of integers
            The true ranks, 0..K-1.

        Returns
        -------
        targets : Tensor, shape (..., K-1) of bool
            Whether y > k.
        active : Tensor, shape (..., K-1) of bool
            Whether the row takes part in the task.

        Examples
        --------
        >>> targets, active = method("corn", num_classes=4).tasks(torch.tensor([1]))
        >>> targets
        tensor([[ True, False, False]])
        >>> active
        tensor([[ True,  True, False]])
        """
        if self.spec.active_tasks is None:
            raise ValueError(
                f"{self.name} has no binary tasks; {', '.join(_with_binary_tasks())} have"
            )
        if not isinstance(ranks, Tensor) or ranks.is_floating_point() or ranks.is_complex():
            came = ranks.dtype if isinstance(ranks, Tensor) else type(ranks).__name__
            raise ValueError(f"ranks must be a tensor of integers; got {came}")
        if ranks.numel() and not 0 <= int(ranks.min()) <= int(ranks.max()) < self.num_classes:
            raise ValueError(
                f"ranks must lie in 0..{self.num_classes - 1}; got {int(ranks.min())} to "
                f"{int(ranks.max())}"
            )
        num_tasks = self.num_classes - 1
        targets = ranks.unsqueeze(-1) > torch.arange(num_tasks, device=ranks.device)
        options = _accepted(self.spec.active_tasks, self.options)
        return targets, self.spec.active_tasks(ranks, num_tasks, **options)

    def _with_task_weight(self, task_weight: Weights | None) -> dict[str, Any]:
        if task_weight is None:
            return self._loss_options
        if not self.spec.has_binary_tasks:
            raise ValueError(
                f"task_weight weighs the binary tasks of {', '.join(_with_binary_tasks())}; "
                f"{self.name!r} has none: use class_weight or sample_weight"
            )
        return {**self._loss_options, "task_weight": task_weight}

    def _checked(self, logits: Tensor) -> Tensor:
        if not isinstance(logits, Tensor):
            raise ValueError(f"logits must be a tensor; got {type(logits).__name__}")
        if logits.dim() == 0 or logits.shape[-1] != self.num_logits:
            raise ValueError(
                f"{self.name} with {self.num_classes} classes needs logits (..., "
                f"{self.num_logits}), as its head gives; got {tuple(logits.shape)}"
            )
        return logits


def method(name: str, num_classes: int, **options: Any) -> Method:
    """A method by its name, for a number of classes.

    Parameters
    ----------
    name : str
        One of ``echelon.METHODS``; `echelon methods` lists them.
    num_classes : int
        K, at least 2.
    **options
        What the method's loss takes beyond the shared arguments, such as ``link="probit"`` for
        clm; ``echelon.methods.METHODS[name].options`` lists them with their defaults.

    Examples
    --------
    >>> corn = method("corn", num_classes=5)
    >>> head = corn.head(8)
    >>> logits = head(torch.randn(16, 8))
    >>> loss = corn.loss(logits, torch.randint(5, (16,)))
    >>> corn.curve(logits).probabilities.shape
    torch.Size([16, 5])
    """
    return Method(name, num_classes, options)


def _with_binary_tasks() -> list[str]:
    return [name for name, spec in METHODS.items() if spec.has_binary_tasks]


def _require_known(name: str, options: Mapping[str, Any]) -> None:
    if name not in METHODS:
        close = difflib.get_close_matches(str(name), METHODS, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {name!r}{hint}")
    known = METHODS[name].options
    for option in options:
        if option not in known:
            listed = ", ".join(known) or "none"
            raise ValueError(f"{name} has no option {option!r}; its options are: {listed}")


def _accepted(function: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the options that the function takes."""
    parameters = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in parameters}
