"""The model that is any classifier of scikit-learn, trained on binary tasks of the ranks."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from sklearn.base import clone
from sklearn.utils import get_tags

from echelon.curve import RankCurve
from echelon.data.labels import Labels
from echelon.data.rows import Rows
from echelon.data.tables import RawTable
from echelon.models.base import CurveClassifier
from echelon.models.features import Matrix, encoded, fit_encoder, require_table, with_gaps
from echelon.models.predicting import Decision
from echelon.models.schemes import SchemeFit, fit_scheme


class OrdinalReduction(CurveClassifier):
    """Ordinal regression with any classifier, by binary tasks "is y above k?".

    Parameters
    ----------
    estimator : classifier, optional
        Anything in the manner of scikit-learn with `predict_proba`; cloned, not fitted itself.
        Without one, a logistic regression.
    scheme : {"auto", "independent", "conditional", "augmented", "conditional_augmented"}
        A classifier for each threshold (Frank and Hall), on the rows that reach it (CORN), or one
        for all to which the threshold is a column (Li and Lin), also on CORN's rows. "auto" takes
        what suits the classifier.
    classes : sequence, optional
        All labels, the lowest first. Needed for strings; any other label then raises.
    decision : {"median", "mean", "mode", "kappa"} or array of shape (K, K), optional
        How a distribution becomes a label; see :class:`echelon.OrdinalClassifier`.
    class_weight : mapping from label to weight, or "balanced", optional
    validation_fraction : float
        Share of the rows that are held out for the cut-points of the decision "kappa", before the
        classifier is fitted to all rows; 0 for none.
    random_state : int, RandomState or None
    verbose : int

    Attributes
    ----------
    scheme_ : str
        The scheme that was used.
    classifiers_ : tuple
        The fitted classifiers, or a probability where there was nothing to fit.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from echelon.data import make_friedman
    >>> data = make_friedman(300, num_classes=3)
    >>> model = OrdinalReduction(KNeighborsClassifier()).fit(data.features, data.ranks)
    >>> model.scheme_, model.predict_proba(data.features[:2]).shape
    ('conditional_augmented', (2, 3))
    """

    kind: ClassVar[str] = "reduction"

    def __init__(
        self,
        estimator: Any = None,
        scheme: str = "auto",
        *,
        classes: Sequence[Any] | None = None,
        decision: Decision = None,
        class_weight: Mapping[Any, float] | str | None = None,
        validation_fraction: float = 0.0,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.scheme = scheme
        self.classes = classes
        self.decision = decision
        self.class_weight = class_weight
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    def fit_rows(self, rows: Rows, validation: Rows | None, labels: Labels, seed: int) -> None:
        """Fit the classifiers; validation rows are used by no scheme."""
        require_table(rows, self)
        estimator = self._seeded(seed)
        self._encoder = None if get_tags(estimator).input_tags.allow_nan else fit_encoder(rows)
        self._schema = rows.schema
        features = self._features(rows.table)
        fitted = fit_scheme(
            estimator, self.scheme, features, rows.ranks, labels.num_classes, weight=rows.weight
        )
        self.fitted_: SchemeFit = fitted
        self.scheme_, self.classifiers_ = fitted.scheme, fitted.classifiers

    def _seeded(self, seed: int) -> Any:
        if self.estimator is None:
            from sklearn.linear_model import LogisticRegression

            return LogisticRegression(max_iter=1000)
        estimator = clone(self.estimator)
        takes_seed = "random_state" in inspect.signature(type(estimator).__init__).parameters
        if takes_seed and estimator.random_state is None:
            estimator.set_params(random_state=seed)
        return estimator

    def _features(self, table: RawTable) -> Matrix:
        if self._encoder is None:
            return with_gaps(table, self._schema)
        return encoded(self._encoder, table)

    def curves_of_rows(self, table: RawTable) -> Iterator[RankCurve]:
        """The curve of the classifiers' answers: by the chain rule, or of sorted exceedances."""
        yield self.fitted_.curve(self._features(table))

    def describe_model(self) -> Any:
        """Refuse: a classifier of another library cannot be saved as data."""
        raise ValueError(
            "an OrdinalReduction cannot be saved, as reading a classifier of another library back "
            "would have to run code; save an OrdinalClassifier, or fit this one again where it is "
            "needed"
        )
