"""The model that is a kernel machine with large margins: support vector ordinal regression."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from echelon.models.arguments import is_whole
from echelon.models.document import typed
from echelon.models.features import Matrix
from echelon.models.kernels import (
    KERNELS,
    KernelScore,
    LinearScore,
    kernel_features,
    read_gamma,
)
from echelon.models.large_margin import fit_margin
from echelon.models.predicting import Decision
from echelon.models.scored import Scored, ScoredClassifier
from echelon.spaces import Between, OneOf, Space

_EXACT_ROWS = 1_500  # for which a kernel is taken as it is
_LANDMARKS = 400  # by which it is approximated above that
_LEAST = 1e-9  # of the largest dual: what gives less is no support vector
_HIGHEST_DEGREE = 20


class OrdinalSVM(ScoredClassifier):
    """Support vector ordinal regression: large margins of one score among ordered cutpoints.

    The problem is solved to the end, so that nothing of a score is random up to 1,500 rows. Above
    that, the kernel is that of features by landmarks (Nystroem), and time grows with the number of
    rows; it takes memory for 400 numbers a row and some for each threshold. The curve is
    P(y <= k) = F(a (b_k - f)), with the scale a fitted on rows that the scores have not seen: its
    median is the machine's own rule, the number of cutpoints below the score.

    Parameters
    ----------
    form : {"implicit", "explicit", "reduction"}
        Every row against every cutpoint (SVORIM of Chu and Keerthi), a row against the cutpoints
        beside its rank (SVOREX), or one binary machine on all thresholds (RED-SVM of Lin and Li).
    C : float
        What a margin that is short by 1 costs, times the weight of the row.
    kernel : {"rbf", "linear", "poly"}
        exp(-gamma |x - z|^2), x.z or (gamma x.z + 1)^degree of standardised columns.
    gamma : {"scale", "auto"} or float
        1/d over the variance of all d columns, 1/d, or a number.
    degree : int
        The degree of the kernel "poly".
    landmarks : int, optional
        How many rows the features of the kernel are made of. Without it all, up to 1,500 rows,
        which is the exact kernel, and 400 drawn at random above that.
    classes : sequence, optional
        All labels, the lowest first. Needed for strings; any other label then raises.
    decision : {"median", "mean", "mode", "kappa"} or array of shape (K, K), optional
        How a distribution becomes a label; see :class:`echelon.OrdinalClassifier`.
    class_weight : mapping from label to weight, or "balanced", optional
        What the rows of each class count for; "balanced" lets every class count alike.
    validation_fraction : float
        Share of the rows that are held out for the scale of the curve and the cut-points of the
        decision "kappa", before the model is fitted to all rows; with 0 the scale is fitted by
        three folds.
    random_state : int, RandomState or None
        The seed of the landmarks and of the folds.
    verbose : int
        Whether a fit shows its progress; this model has none to show.

    Attributes
    ----------
    scored_ : echelon.models.scored.Scored
        The score and its cutpoints.
    scale_ : float
        The number a that makes a curve of the score.

    Examples
    --------
    >>> from echelon.data import make_friedman
    >>> data = make_friedman(200, num_classes=4)
    >>> model = OrdinalSVM(random_state=0).fit(data.features, data.ranks)
    >>> model.predict_proba(data.features[:2]).shape
    (2, 4)
    """

    kind: ClassVar[str] = "svm"
    space: ClassVar[Space] = {
        "form": OneOf(("implicit", "explicit", "reduction")),
        "C": Between(0.01, 100, log=True),
        "gamma": Between(0.001, 1, log=True),
    }

    def __init__(
        self,
        form: str = "implicit",
        C: float = 1.0,  # noqa: N803
        kernel: str = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        landmarks: int | None = None,
        classes: Sequence[Any] | None = None,
        decision: Decision = None,
        class_weight: Mapping[Any, float] | str | None = None,
        validation_fraction: float = 0.0,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.form = form
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.landmarks = landmarks
        self.classes = classes
        self.decision = decision
        self.class_weight = class_weight
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    def learn(
        self,
        features: Matrix,
        ranks: NDArray[np.int64],
        weight: Matrix | None,
        num_classes: int,
        seed: int,
    ) -> Scored:
        """Solve the problem in the features of the kernel."""
        gamma = self._checked_gamma(features)
        problem: dict[str, Any] = {"form": self.form, "C": self.C, "weight": weight}
        if self.kernel == "linear":
            fit = fit_margin(features, ranks, num_classes, **problem)
            return Scored(LinearScore.of(fit.coefficients), fit.cutpoints)
        shape = self.kernel, gamma, self.degree
        places = self._landmarks(len(features), seed)
        made = kernel_features(features, features[places], *shape)
        fit = fit_margin(made.features, ranks, num_classes, **problem)
        coefficients = made.to_features @ fit.coefficients
        if len(places) == len(features):  # the same function, by its support vectors alone
            support = np.abs(fit.duals) > _LEAST * np.abs(fit.duals).max(initial=0.0)
            coefficients, places = fit.duals[support], places[support]
        return Scored(KernelScore.of(features[places], coefficients, *shape), fit.cutpoints)

    def _checked_gamma(self, features: Matrix) -> float:
        if self.kernel not in KERNELS:
            known = ", ".join(map(repr, KERNELS))
            raise ValueError(f"kernel must be one of {known}; got {self.kernel!r}")
        if not is_whole(self.degree) or self.degree > _HIGHEST_DEGREE:
            raise ValueError(
                f"degree must be a whole number from 1 to {_HIGHEST_DEGREE}; got {self.degree!r}"
            )
        return read_gamma(self.gamma, features)

    def _landmarks(self, num_rows: int, seed: int) -> NDArray[np.int64]:
        """The places of the rows that features are made of, (m,)."""
        number = self.landmarks
        if number is None:
            number = num_rows if num_rows <= _EXACT_ROWS else _LANDMARKS
        elif not is_whole(number):
            raise ValueError(f"landmarks must be a whole number of at least 1; got {number!r}")
        if number >= num_rows:
            return np.arange(num_rows)
        chosen = np.random.default_rng(seed).choice(num_rows, number, replace=False)
        return np.sort(chosen)

    def outcome(self) -> dict[str, Any]:
        """How many rows the score is made of, where it has a kernel."""
        score = self.scored_.score
        return {"landmarks": len(score.landmarks)} if isinstance(score, KernelScore) else {}

    def describe_score(self) -> dict[str, Any]:
        """The kernel."""
        score = self.scored_.score
        if not isinstance(score, KernelScore):
            return {"kernel": "linear"}
        return {"kernel": score.kernel, "gamma": score.gamma, "degree": score.degree}

    def empty_score(self, document: dict[str, Any], tensors: dict[str, Tensor]) -> nn.Module:
        """A score with this kernel."""
        kernel = typed(document["kernel"], str, "kernel")
        if kernel == "linear":
            return LinearScore(len(tensors["coefficients"]))
        gamma, degree = document["gamma"], document["degree"]
        if kernel not in KERNELS or type(gamma) is not float or not 0 < gamma < np.inf:
            raise ValueError("its kernel is none")
        if type(degree) is not int or not 1 <= degree <= _HIGHEST_DEGREE:
            raise ValueError("the degree of its kernel is none")
        number, width = tensors["landmarks"].shape
        return KernelScore(number, width, kernel, gamma, degree)
