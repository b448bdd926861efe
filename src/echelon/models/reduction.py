"""The model that is any classifier of scikit-learn, trained on binary tasks of the ranks."""

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from echelon.curve import RankCurve
from echelon.data.labels import Labels
from echelon.data.rows import Rows
from echelon.data.schema import RawTable
from echelon.models.base import CurveClassifier
from echelon.models.document import Described, typed
from echelon.models.features import (
    Matrix,
    describe_encoder,
    encoded,
    fit_encoder,
    rebuild_encoder,
    require_table,
    with_gaps,
)
from echelon.models.predicting import Decision
from echelon.models.saved_classifiers import SavedLinear, describe_classifier, rebuild_classifier
from echelon.models.schemes import CODINGS, SCHEMES, SchemeFit, fit_scheme

_ENCODER = "encoder."


class OrdinalReduction(CurveClassifier):
    """Ordinal regression with any classifier, by binary tasks "is y above k?".

    Those of logistic models and of LightGBM can be saved; others would have to be pickled.

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
    of_the_machine: ClassVar[tuple[str, ...]] = ("estimator", "random_state", "verbose")

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

    def describe_model(self) -> Described:
        """The classifiers as data, where they can be that."""
        fitted = self.fitted_
        if fitted.preprocessing is not None:
            raise ValueError(
                "an OrdinalReduction of a pipeline cannot be saved, as reading its steps back "
                "would have to run code; give it the classifier alone: numbers are standardised "
                "and categories encoded where it needs that"
            )
        width = self._width()
        tensors = {}
        if self._encoder is not None:
            tensors = {f"{_ENCODER}{k}": v for k, v in describe_encoder(self._encoder).items()}
        described = []
        for place, classifier in enumerate(fitted.classifiers):
            document, numbers = describe_classifier(classifier, width)
            described.append(document)
            if numbers is not None:
                tensors[str(place)] = numbers
        document = {
            "scheme": fitted.scheme,
            "reached": fitted.reached.tolist(),
            "coding": fitted.coding,
            "threshold_scale": fitted.threshold_scale,
            "encoded": self._encoder is not None,
            "classifiers": described,
        }
        return Described(document, tensors)

    def rebuild_model(self, described: Described) -> None:
        """The classifiers that a file describes, which is not trusted."""
        document, tensors = described
        self._schema = self.schema_
        own = {k.removeprefix(_ENCODER): v for k, v in tensors.items() if k.startswith(_ENCODER)}
        self._encoder = None
        if typed(document["encoded"], bool, "encoding"):
            self._encoder = rebuild_encoder(own, self.schema_)
        elif own:
            raise ValueError("it has an encoder that it does not use")
        num_classes = self.labels_.num_classes
        scheme = typed(document["scheme"], str, "scheme")
        reached = typed(document["reached"], list, "thresholds")
        scale = document["threshold_scale"]
        listed = typed(document["classifiers"], list, "classifiers")
        if scheme not in SCHEMES:
            raise ValueError(f"its scheme must be one of {', '.join(SCHEMES)}; got {scheme!r}")
        shared = SCHEMES[scheme].shared and num_classes > 2
        if (document["coding"] in CODINGS) != shared or len(listed) != (num_classes - 1, 1)[shared]:
            raise ValueError("its classifiers do not fit its scheme")
        if len(reached) != num_classes - 1 or not all(type(one) is bool for one in reached):
            raise ValueError("its thresholds do not fit its classes")
        if type(scale) not in (int, float) or not 0 < scale < math.inf:
            raise ValueError("the scale of its thresholds must be a number above 0")
        fitted = SchemeFit(
            scheme,
            num_classes,
            (),
            np.array(reached, dtype=bool),
            coding=document["coding"] if shared else None,
            threshold_scale=float(scale),
        )
        self.fitted_ = fitted
        width = self._width()
        classifiers = tuple(
            rebuild_classifier(one, tensors.get(str(place)), width)
            for place, one in enumerate(listed)
        )
        if len(tensors) != len(own) + sum(isinstance(one, SavedLinear) for one in classifiers):
            raise ValueError("it has tensors that have no place in a reduction")
        self.fitted_ = replace(fitted, classifiers=classifiers)
        self.scheme_, self.classifiers_ = scheme, classifiers

    def _width(self) -> int:
        """How many columns the classifiers take, those of the threshold among them."""
        if self._encoder is not None:
            columns = self._encoder.num_features
        else:
            categories = (len(column.categories) for column in self._schema.categorical)
            columns = len(self._schema.numeric) + sum(categories)
        fitted = self.fitted_
        extra = {None: 0, "numeric": 1, "one_hot": fitted.num_classes - 1}
        return columns + extra[fitted.coding]
