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
from echelon.data.splits import count_units, folds
from echelon.models.base import CurveClassifier
from echelon.models.classifiers import gives_probabilities
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
from echelon.models.score_map import fit_scale
from echelon.models.train_costs import task_weights
from echelon.spaces import OneOf, Space

_FOLDS = 3
_ENCODER = "encoder."


class OrdinalReduction(CurveClassifier):
    """Ordinal regression with any classifier, by binary tasks "is y above k?".

    Those of linear models and of LightGBM can be saved; others would have to be pickled.

    A curve has the classifiers' own probabilities. Where these say nothing of P(y > k), because
    the classifier gives scores alone or learns costs by `train_cost`, it is F(a g) of their logits
    or scores g, with a scale a that is fitted on rows they have not seen. Its median is the ranker
    of Lin and Li (2012): the number of thresholds that are passed.

    Our form of the parallel hyperplanes of Rajaram, Garg, Zhou and Huang (2003), whose text could
    not be consulted, is ``OrdinalReduction(LinearSVC(), scheme="augmented", train_cost="zero_one",
    threshold="one_hot")``: every row at the two thresholds beside its rank, which are columns. Its
    other half, preferences between rows, is the method ``"ranking"``.

    Parameters
    ----------
    estimator : classifier, optional
        Anything in the manner of scikit-learn with `predict_proba`, or at least
        `decision_function`; cloned, not fitted itself. Without one, a logistic regression.
    scheme : {"auto", "independent", "conditional", "augmented", "conditional_augmented"}
        A classifier for each threshold (Frank and Hall), on the rows that reach it (CORN), or one
        for all to which the threshold is a column (Li and Lin), also on CORN's rows. "auto" takes
        what suits the classifier.
    train_cost : {"absolute", "squared", "zero_one"} or array of shape (K, K), optional
        What a prediction costs, true rank by predicted rank: tasks are weighed so that their
        mistakes bound it. Not for the conditional schemes. Without it, and with "absolute", all
        tasks count alike, which is best where the curve matters: a `decision` can weigh costs
        afterwards.
    threshold : {"auto", "numeric", "one_hot"}
        How the threshold stands in the rows of one classifier for all: as a number, which trees
        can divide, or as a column for each, which a linear model needs.
    classes : sequence, optional
        All labels, the lowest first. Needed for strings; any other label then raises.
    decision : {"median", "mean", "mode", "kappa"} or array of shape (K, K), optional
        How a distribution becomes a label; see :class:`echelon.OrdinalClassifier`.
    class_weight : mapping from label to weight, or "balanced", optional
        What the rows of each class count for; "balanced" lets every class count alike.
    validation_fraction : float
        Share of the rows that are held out for the cut-points of the decision "kappa", and the
        scale of the curve where it has one, before the classifier is fitted to all rows; with 0
        the scale is fitted by three folds.
    random_state : int, RandomState or None
        The seed of everything random in the fit; None draws another one every time.
    verbose : int
        Whether a fit shows its progress; this model has none to show.

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
    space: ClassVar[Space] = {
        "scheme": OneOf(("independent", "conditional", "augmented", "conditional_augmented")),
    }
    of_the_machine: ClassVar[tuple[str, ...]] = ("estimator", "random_state", "verbose")
    fitted_: SchemeFit

    def __init__(
        self,
        estimator: Any = None,
        scheme: str = "auto",
        *,
        train_cost: Any = None,
        threshold: str = "auto",
        classes: Sequence[Any] | None = None,
        decision: Decision = None,
        class_weight: Mapping[Any, float] | str | None = None,
        validation_fraction: float = 0.0,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.scheme = scheme
        self.train_cost = train_cost
        self.threshold = threshold
        self.classes = classes
        self.decision = decision
        self.class_weight = class_weight
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    def fit_rows(self, rows: Rows, validation: Rows | None, labels: Labels, seed: int) -> None:
        """Fit the classifiers; validation rows fit the scale of the curve, where it has one."""
        self._fit_classifiers(rows, labels, seed)
        if self._has_probabilities():
            return
        if validation is not None:
            distances = -self.fitted_.task_logits(self._features(validation.table))
            ranks, weight = validation.ranks, validation.weight
        else:
            distances = self._distances_by_folds(rows, labels, seed)
            ranks, weight = rows.ranks, rows.weight
        # Answers that contradict each other are sorted, as in the curve.
        self.fitted_ = replace(
            self.fitted_, scale=fit_scale(np.sort(distances, axis=1), ranks, weight)
        )

    def fit_again(self, rows: Rows, labels: Labels, seed: int) -> None:
        """Fit the classifiers to all rows; the scale stays that of the held-out rows."""
        scale = self.fitted_.scale
        self._fit_classifiers(rows, labels, seed)
        self.fitted_ = replace(self.fitted_, scale=scale)

    def _fit_classifiers(self, rows: Rows, labels: Labels, seed: int) -> None:
        require_table(rows, self)
        estimator = self._seeded(seed)
        self._encoder = None if get_tags(estimator).input_tags.allow_nan else fit_encoder(rows)
        self._schema = rows.schema
        self.fitted_ = self._scheme(estimator, rows, labels.num_classes)
        self.scheme_, self.classifiers_ = self.fitted_.scheme, self.fitted_.classifiers

    def _scheme(self, estimator: Any, rows: Rows, num_classes: int) -> SchemeFit:
        weights = None
        if self.train_cost is not None:
            weights = task_weights(self.train_cost, num_classes)
        return fit_scheme(
            estimator,
            self.scheme,
            self._features(rows.table),
            rows.ranks,
            num_classes,
            weight=rows.weight,
            coding=self.threshold,
            task_weight=None if weights is None or (weights == 1).all() else weights,
        )

    def _has_probabilities(self) -> bool:
        """Whether the answers are P(y > k), so that no scale is needed."""
        if self.estimator is not None and not gives_probabilities(self.estimator):
            return False
        cost = self.train_cost
        return cost is None or (isinstance(cost, str) and cost == "absolute")

    def _distances_by_folds(self, rows: Rows, labels: Labels, seed: int) -> Matrix:
        """Minus the logits of every row, (n, K-1), by classifiers that have not seen it."""
        distances = np.zeros((len(rows), labels.num_classes - 1))
        number = min(_FOLDS, count_units(rows.table, rows.groups))
        if number < 2:
            return distances
        generator = np.random.default_rng(seed)
        fold_of = folds(rows.table, number, groups=rows.groups, generator=generator)
        for fold in range(number):
            out = fold_of == fold
            if rows.weight is not None and not rows.weight[~out].any():
                continue
            fitted = self._scheme(self._seeded(seed), rows.select(~out), labels.num_classes)
            distances[out] = -fitted.task_logits(self._features(rows.table.rows(out)))
        return distances

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
            "scale": fitted.scale,
            "encoded": self._encoder is not None,
            "classifiers": described,
        }
        return Described(document, tensors)

    def rebuild_model(self, described: Described) -> None:
        """The classifiers that a file describes, which is not trusted."""
        document, tensors = described
        self._schema = self.schema_
        of_encoder = {
            k.removeprefix(_ENCODER): v for k, v in tensors.items() if k.startswith(_ENCODER)
        }
        self._encoder = None
        if typed(document["encoded"], bool, "encoding"):
            self._encoder = rebuild_encoder(of_encoder, self.schema_)
        elif of_encoder:
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
        if len(reached) != num_classes - 1 or not all(type(flag) is bool for flag in reached):
            raise ValueError("its thresholds do not fit its classes")
        of_curve = document.get("scale", 1.0)
        for name, value in (("thresholds", scale), ("curve", of_curve)):
            if type(value) not in (int, float) or not 0 < value < math.inf:
                raise ValueError(f"the scale of its {name} must be a number above 0")
        fitted = SchemeFit(
            scheme,
            num_classes,
            (),
            np.array(reached, dtype=bool),
            coding=document["coding"] if shared else None,
            threshold_scale=float(scale),
            scale=float(of_curve),
        )
        self.fitted_ = fitted
        width = self._width()
        classifiers = tuple(
            rebuild_classifier(saved, tensors.get(str(place)), width)
            for place, saved in enumerate(listed)
        )
        if len(tensors) != len(of_encoder) + sum(
            isinstance(classifier, SavedLinear) for classifier in classifiers
        ):
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
