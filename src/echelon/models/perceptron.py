"""The model that learns online: PRank, a perceptron with ordered cutpoints."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from echelon.data.columns import gathered_remarks
from echelon.data.labels import Labels
from echelon.data.rows import Rows, class_weights, row_weights
from echelon.evaluation.arguments import as_weight
from echelon.models.arguments import is_whole
from echelon.models.document import Described, typed
from echelon.models.features import Matrix, encoded
from echelon.models.kernels import LinearScore
from echelon.models.predicting import Decision, require_same_length
from echelon.models.rounds import Perceptron, presentations
from echelon.models.score_map import fit_scale
from echelon.models.scored import Scored, ScoredClassifier, finite_vector
from echelon.spaces import Between, OneOf, Space

_RECENT = 1_000  # rows on whose scores, made before they were learnt from, the curve is fitted
_SHARE = 0.1  # of them that must be new before it is fitted again
_STATE = ("coefficients", "cutpoints", "late_coefficients", "late_cutpoints")
_PREFIX = "state_"
_MOST = 2**53  # rounds that a file may speak of


class PRank(ScoredClassifier):
    """The perceptron with ordered cutpoints (Crammer and Singer 2002), also row by row.

    Linear in the columns, which are standardised. :meth:`partial_fit` learns from rows as they
    come; a pass over n rows takes O(n (d + K)). The curve is P(y <= k) = F(a (b_k - f)), with the
    scale a fitted on scores of rows before they were learnt from.

    Parameters
    ----------
    passes : int
        How often :meth:`fit` goes over the rows; the paper's one pass is 1.
    average : bool
        Whether to predict with the means of coefficients and cutpoints over all rounds, which is
        best where no line separates the ranks, instead of with the last ones.
    shuffle : bool
        Whether the rows of each pass of :meth:`fit` come in random order.
    classes : sequence, optional
        All labels, the lowest first. Needed for strings and for :meth:`partial_fit`.
    decision : {"median", "mean", "mode", "kappa"} or array of shape (K, K), optional
        How a distribution becomes a label; see :class:`echelon.OrdinalClassifier`.
    class_weight : mapping from label to weight, or "balanced", optional
        How often rows of a class are learnt from in a pass, on average, as other weights too.
    validation_fraction : float
        Share of the rows that are held out for the scale of the curve and the cut-points of the
        decision "kappa", before the model is fitted to all rows; with 0 the scale is fitted by
        three folds.
    random_state : int, RandomState or None
        For the order of rows, and how often each comes.
    verbose : int
        Whether a fit shows its progress; this model has none to show.

    Attributes
    ----------
    state_ : echelon.models.rounds.Perceptron
        Coefficients and cutpoints as they are after the last round, and the loss of all rounds.
    scored_ : echelon.models.scored.Scored
        The score that predicts, and its cutpoints.
    scale_ : float
        The number a that makes a curve of the score.

    Examples
    --------
    >>> from echelon.data import make_friedman
    >>> data = make_friedman(600, num_classes=3)
    >>> model = PRank(classes=[0, 1, 2], random_state=0)
    >>> for rows in (slice(0, 300), slice(300, 600)):
    ...     model = model.partial_fit(data.features[rows], data.ranks[rows])
    >>> model.state_.num_rounds
    600
    """

    kind: ClassVar[str] = "prank"
    space: ClassVar[Space] = {
        "passes": Between(1, 50, log=True, whole=True),
        "average": OneOf((True, False)),
    }

    def __init__(
        self,
        passes: int = 10,
        *,
        average: bool = True,
        shuffle: bool = True,
        classes: Sequence[Any] | None = None,
        decision: Decision = None,
        class_weight: Mapping[Any, float] | str | None = None,
        validation_fraction: float = 0.0,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.passes = passes
        self.average = average
        self.shuffle = shuffle
        self.classes = classes
        self.decision = decision
        self.class_weight = class_weight
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    # ---- fitting -----------------------------------------------------------------------------

    def fit_rows(self, rows: Rows, validation: Rows | None, labels: Labels, seed: int) -> None:
        """Learn from the rows, pass by pass."""
        super().fit_rows(rows, validation, labels, seed)
        self._take_state()

    def fit_again(self, rows: Rows, labels: Labels, seed: int) -> None:
        """Learn from all rows."""
        super().fit_again(rows, labels, seed)
        self._take_state()

    def _take_state(self) -> None:
        score = self.scored_.score
        assert isinstance(score, _Remembering)
        self.state_: Perceptron = score.state

    def take_unseen(
        self, distances: Matrix, ranks: NDArray[np.int64], weight: Matrix | None
    ) -> None:
        """Fit the scale of the curve, and keep some of these rows for the rows to come."""
        super().take_unseen(distances, ranks, weight)
        self._recent = _Recent(distances[-_RECENT:], ranks[-_RECENT:])

    def learn(
        self,
        features: Matrix,
        ranks: NDArray[np.int64],
        weight: Matrix | None,
        num_classes: int,
        seed: int,
    ) -> Scored:
        """Passes over the rows, from nothing."""
        if not is_whole(self.passes):
            raise ValueError(f"passes must be a whole number of at least 1; got {self.passes!r}")
        state = Perceptron.start(features.shape[1], num_classes)
        generator = np.random.default_rng(seed)
        even = np.ones(len(ranks)) if weight is None else weight / weight.mean()
        for _ in range(self.passes):
            order = presentations(even, generator)
            if self.shuffle:
                order = generator.permutation(order)
            state.learn(features[order], ranks[order])
        return self._predicting(state)

    def _predicting(self, state: Perceptron) -> Scored:
        coefficients, cutpoints = state.coefficients.copy(), state.cutpoints.copy()
        if self.average:
            coefficients, cutpoints = state.averaged()
            cutpoints = np.maximum.accumulate(cutpoints)  # but for rounding
        return Scored(_Remembering.after(state, coefficients), cutpoints)

    def partial_fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        classes: Sequence[Any] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> "PRank":
        """Learn from more rows, each once and in their order, without forgetting what was learnt.

        The first call, or a call of ``fit`` before it, decides what the columns are and how numbers
        are standardised, so let it have some hundred rows. All labels must be known by then: they
        are the parameter `classes`, or that of the first call. Calibration and the rows of
        intervals belong to the model as it was, and are dropped.

        Parameters
        ----------
        X, y
            Rows and labels, as for ``fit``.
        classes : sequence, optional
            All labels, the lowest first; only in the first call, or the same again.
        sample_weight : array-like, shape (n,), optional
            How often each row is learnt from, on average.
        """
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if not hasattr(self, "labels_"):
            return self._fit_first(X, y, classes, sample_weight, seed)
        if classes is not None and list(classes) != self.classes_.tolist():
            raise ValueError(
                f"classes must stay {self.classes_.tolist()} once learning has begun; got "
                f"{list(classes)}"
            )
        rows = self._read(X, y, self.labels_, self.schema_, sample_weight)
        features = encoded(self.encoder_, rows.table)
        recent = self._recent.followed_by(self.scored_.distances(features), rows.ranks)
        state = self.state_.copy()
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        generator = np.random.default_rng((seed, state.num_rounds))
        order = presentations(weight, generator)
        state.learn(features[order], rows.ranks[order])
        scale = self.scale_
        if recent.num_new >= _SHARE * len(recent.ranks):
            scale = fit_scale(recent.distances, recent.ranks)
            recent = recent._replace(num_new=0)
        # In one step, as others may be predicting with the model.
        self.__dict__.update(
            state_=state,
            scored_=self._predicting(state),
            scale_=scale,
            _recent=recent,
            num_rows_=None if self.num_rows_ is None else self.num_rows_ + len(rows),
            calibration_=None,
            calibration_summary_=None,
            conformal_=None,
            cutpoints_=None,
            kappa_=None,
        )
        return self

    def _fit_first(
        self,
        X: Any,  # noqa: N803
        y: Any,
        classes: Sequence[Any] | None,
        sample_weight: ArrayLike | None,
        seed: int,
    ) -> "PRank":
        known = self.classes if classes is None else list(classes)
        if known is None:
            raise ValueError(
                "partial_fit must know all labels before it sees them; give them to the model, "
                "PRank(classes=[...]), or to the first call, partial_fit(X, y, classes=[...])"
            )
        labels, schema = Labels.of(y, known), self.read_schema(X)
        rows = self._read(X, y, labels, schema, sample_weight)
        beside = copy.copy(self)
        beside.set_params(passes=1, shuffle=False, validation_fraction=0.0)
        fitted = beside.fit_read(rows, None, labels, seed)
        given = self._given_parameters()
        fitted.set_params(**given)
        fitted.fitted_parameters_ = given | {"classes": labels.classes.tolist()}
        self.__dict__ = fitted.__dict__
        return self

    def _read(
        self,
        X: Any,  # noqa: N803
        y: Any,
        labels: Labels,
        schema: Any,
        sample_weight: ArrayLike | None,
    ) -> Rows:
        with gathered_remarks():
            table = schema.read(X)
        ranks = labels.to_ranks(y)
        require_same_length(len(table), len(ranks), "y")
        if len(ranks) == 0:
            raise ValueError("there are no rows")
        weight = None if sample_weight is None else as_weight(sample_weight, length=len(ranks))
        per_class = class_weights(self.class_weight, weight, ranks, labels)
        return Rows(schema, table, ranks, row_weights(weight, per_class, ranks))

    def outcome(self) -> dict[str, Any]:
        """The coefficients, and the rounds that made them."""
        return {"coefficients": self.coefficients(), "rounds": self.state_.num_rounds}

    def coefficients(self) -> dict[str, float]:
        """What each encoded column adds to the score; a larger score means a higher rank.

        Numbers are in units of their standard deviation.
        """
        check_is_fitted(self, "labels_")
        names = self.encoder_.feature_names(self.schema_)
        values = self.scored_.score.get_buffer("coefficients").tolist()
        return dict(zip(names, values, strict=True))

    # ---- files -------------------------------------------------------------------------------

    def describe_model(self) -> Described:
        """The score, and the state from which :meth:`partial_fit` goes on."""
        document, tensors = super().describe_model()
        state = self.state_
        of_state = {_PREFIX + name: torch.from_numpy(getattr(state, name)) for name in _STATE}
        of_state[f"{_PREFIX}distances"] = torch.from_numpy(self._recent.distances)
        of_state[f"{_PREFIX}ranks"] = torch.from_numpy(self._recent.ranks)
        document |= {
            "rounds": state.num_rounds, "loss": state.loss, "new": self._recent.num_new,
        }  # fmt: skip
        return Described(document, tensors | of_state)

    def rebuild_model(self, described: Described) -> None:
        """The model that a file describes, which is not trusted."""
        document, tensors = described
        of_state = {name: tensors[_PREFIX + name] for name in (*_STATE, "distances", "ranks")}
        rest = {k: v for k, v in tensors.items() if not k.startswith(_PREFIX)}
        if len(tensors) != len(rest) + len(of_state):
            raise ValueError("it has tensors that have no place in a perceptron")
        super().rebuild_model(Described(document, rest))
        sizes = self.encoder_.num_features, self.labels_.num_classes - 1
        arrays = [
            finite_vector(of_state[name], size, name).copy()
            for name, size in zip(_STATE, (*sizes, *sizes), strict=True)
        ]
        counts = [typed(document[name], int, name) for name in ("rounds", "loss", "new")]
        if not all(0 <= count <= _MOST for count in counts) or (np.diff(arrays[1]) < 0).any():
            raise ValueError("its rounds cannot have led to its cutpoints")
        state = Perceptron(*arrays, *counts[:2])
        self._recent = _Recent.read(of_state["distances"], of_state["ranks"], sizes[1], counts[2])
        coefficients = self.scored_.score.get_buffer("coefficients").numpy()
        score = _Remembering.after(state, coefficients)
        self.scored_ = Scored(score, self.scored_.cutpoints)
        self._take_state()

    def empty_score(self, document: dict[str, Any], tensors: dict[str, Tensor]) -> nn.Module:
        """A linear score."""
        return LinearScore(len(tensors["coefficients"]))


class _Remembering(LinearScore):
    """A linear score that knows the rounds that led to it."""

    state: Perceptron

    @classmethod
    def after(cls, state: Perceptron, coefficients: Matrix) -> "_Remembering":
        made = cls(len(coefficients))
        made.coefficients.copy_(torch.from_numpy(coefficients))
        made.state = state
        return made


class _Recent(NamedTuple):
    """The newest rows, as they were before they were learnt from; `num_new` have come since a fit.

    `distances` (m, K-1) are those from their scores to the cutpoints.
    """

    distances: Matrix
    ranks: NDArray[np.int64]
    num_new: int = 0

    def followed_by(self, distances: Matrix, ranks: NDArray[np.int64]) -> "_Recent":
        return _Recent(
            np.concatenate([self.distances, distances])[-_RECENT:],
            np.concatenate([self.ranks, ranks])[-_RECENT:],
            self.num_new + len(ranks),
        )

    @classmethod
    def read(cls, distances: Tensor, ranks: Tensor, tasks: int, num_new: int) -> "_Recent":
        """As a file says them, which is not trusted."""
        if distances.dtype != torch.float64 or distances.dim() != 2 or distances.shape[1] != tasks:
            raise ValueError("the rows that it learnt last do not fit its classes")
        if ranks.dtype != torch.int64 or ranks.shape != distances.shape[:1]:
            raise ValueError("the rows that it learnt last must have a rank each")
        sound = bool(torch.isfinite(distances).all()) and bool(
            ((ranks >= 0) & (ranks <= tasks)).all()
        )
        if not sound:
            raise ValueError("the rows that it learnt last hold what is no rank or no number")
        return cls(distances.numpy(), ranks.numpy(), num_new)
