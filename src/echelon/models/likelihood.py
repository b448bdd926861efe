"""The linear model of the field: proportional odds and its kin, fitted exactly."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from echelon.curve import RankCurve
from echelon.data.columns import Remarks, numbers_of
from echelon.data.kinds.base import TABLE
from echelon.data.kinds.categories import codes_of
from echelon.data.labels import Labels
from echelon.data.rows import Rows
from echelon.data.schema import RawTable, TableSchema
from echelon.data.survey import Survey
from echelon.evaluation.arguments import as_weight
from echelon.evaluation.explanation import OwnContributions
from echelon.models.base import CurveClassifier
from echelon.models.cumulative import CumulativeFit, fit_cumulative
from echelon.models.design import Design, make_design, read_design
from echelon.models.document import Described, typed
from echelon.models.effects import average_effects, probabilities_with_errors
from echelon.models.features import Matrix, require_table
from echelon.models.formula import Formula, read_formula
from echelon.models.graph import Graph
from echelon.models.partial import PartialFit, fit_partial
from echelon.models.predicting import Decision
from echelon.models.saved_links import LinkProbabilities, describe_fit, rebuild_fit
from echelon.models.saved_statistics import describe_statistics, rebuild_statistics
from echelon.models.statistics import Statistics, probability_intervals
from echelon.models.streamed_likelihood import fit_streamed
from echelon.models.summary import Summary
from echelon.spaces import Between, OneOf, Space

_CHUNK = 65_536  # rows whose curves are computed at once
_ABSENT = 0.5  # what a class without rows counts for, so that it keeps a probability
_DESIGN, _FIT, _STATISTICS = "design.", "fit.", "statistics."  # before names of tensors
_MISSING = ("indicator", "drop")
_WEIGHT_KINDS = ("frequency", "sampling")
_MOST_PLACES = 100_000  # rows of one table of probabilities


class CumulativeLinkModel(CurveClassifier):
    """The cumulative link model of largest likelihood: P(y <= k) = F(c_k - x.beta).

    Numbers stay in their units, gaps take the place of the median and are marked by a column of
    their own, categories are compared with a reference; columns that depend on others are found
    and left out. :meth:`summary` has the statistics of the fit.

    Parameters
    ----------
    link : {"logit", "probit", "cloglog"}
        F: proportional odds, ordered probit, or proportional hazards.
    ridge : float
        A penalty of ridge/2 times the squared length of the coefficients of standardised columns;
        0 is the exact fit, and the only one with statistics. A penalised fit has a coefficient for
        every category.
    formula : str, optional
        The terms, as ``"y ~ age + C(sex) + log(dose)"``, with or without the target; without one
        every column is a term. Rows must be a DataFrame, of which other columns are ignored. Needs
        the extra `formula`.
    reference : mapping from column to category, optional
        What the other categories are compared with; the first one where none is named.
    nonproportional : sequence of str, optional
        Columns (or terms) with a coefficient for each threshold: partial proportional odds.
    missing : {"indicator", "drop"}, optional
        Whether gaps are filled and marked by a column, or their rows left out of the fit. Rows are
        left out where there is a formula, unless told.
    weight_kind : {"frequency", "sampling"}, optional
        What `sample_weight` means to the statistics: w equal rows, or one row that stands for w of
        the population. Without it whole numbers are frequencies, all others sampling weights.
    tests : bool
        Whether the fit also makes both tests of proportional odds and the average marginal effects,
        for the summary. They take several fits.
    classes : sequence, optional
        All labels, the lowest first. Needed for strings; any other label then raises.
    decision : {"median", "mean", "mode", "kappa"} or array of shape (K, K), optional
        How a distribution becomes a label; see :class:`echelon.OrdinalClassifier`.
    class_weight : mapping from label to weight, or "balanced", optional
        What the rows of each class count for; "balanced" lets every class count alike.
    validation_fraction : float
        Share of the rows that are held out for the cut-points of the decision "kappa", before the
        model is fitted to all rows; 0 for none.
    random_state : int, RandomState or None
        Which rows are held out; the fit itself has nothing random.
    verbose : int
        Whether a fit shows its progress; this model has none to show.

    Attributes
    ----------
    design_ : echelon.models.design.Design
        The features: from columns to the matrix of the fit.
    fitted_ : echelon.models.cumulative.CumulativeFit or echelon.models.partial.PartialFit
        Coefficients and cut-points of the features, with their covariance.
    statistics_ : echelon.models.statistics.Statistics or None
        What the summary is made of; None for a penalised fit, or where a class has no rows.

    Examples
    --------
    >>> from echelon.data import make_friedman
    >>> data = make_friedman(500, num_classes=3)
    >>> model = CumulativeLinkModel().fit(data.features, data.ranks)
    >>> largest = max(model.coefficients().items(), key=lambda pair: abs(pair[1]))
    >>> largest[0]
    'x3'
    >>> model.summary().frame().loc["x3", ["ratio_lower", "ratio_upper"]].round(0).tolist()
    [339.0, 2645.0]
    """

    kind: ClassVar[str] = "cumulative_link"
    space: ClassVar[Space] = {
        "link": OneOf(("logit", "probit", "cloglog")),
        "ridge": Between(0.001, 1000, log=True),
    }

    def __init__(
        self,
        link: str = "logit",
        ridge: float = 0.0,
        *,
        formula: str | None = None,
        reference: Mapping[str, str] | None = None,
        nonproportional: Sequence[str] | None = None,
        missing: str | None = None,
        weight_kind: str | None = None,
        tests: bool = False,
        classes: Sequence[Any] | None = None,
        decision: Decision = None,
        class_weight: Mapping[Any, float] | str | None = None,
        validation_fraction: float = 0.0,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.link = link
        self.ridge = ridge
        self.formula = formula
        self.reference = reference
        self.nonproportional = nonproportional
        self.missing = missing
        self.weight_kind = weight_kind
        self.tests = tests
        self.classes = classes
        self.decision = decision
        self.class_weight = class_weight
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # One score for all ranks cannot follow classes that lie in no order.
        tags.classifier_tags.poor_score = True
        return tags

    # ---- fitting -----------------------------------------------------------------------------

    @classmethod
    def from_formula(
        cls,
        formula: str,
        data: pd.DataFrame,
        *,
        sample_weight: ArrayLike | None = None,
        groups: Any = None,
        **parameters: Any,
    ) -> "CumulativeLinkModel":
        """A model fitted to a frame, whose target stands in the formula before ``~``.

        Parameters
        ----------
        formula : str
            What is fitted, as in ``"pain ~ age + C(sex)"``.
        data : DataFrame
            The rows, with the target among their columns.
        sample_weight, groups
            As for ``fit``.
        **parameters
            The parameters of the model, as for the class.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> frame = pd.DataFrame({"age": rng.uniform(20, 80, 500)})
        >>> frame["sex"] = rng.choice(["f", "m"], 500)
        >>> frame["pain"] = np.digitize(frame["age"] / 20 + rng.logistic(size=500), [1.5, 3.5])
        >>> model = CumulativeLinkModel.from_formula("pain ~ log(age) + C(sex)", frame)
        >>> list(model.summary().frame().index)
        ['log(age)', 'sex = m']
        """
        target = read_formula(formula, list(map(str, data.columns))).target
        if target is None or target not in data.columns:
            raise ValueError(
                f"the formula must have a column of the frame before ~; got {formula!r}, and the "
                f"columns are: {', '.join(map(str, data.columns))}"
            )
        model = cls(formula=formula, **parameters)
        fitted: CumulativeLinkModel = model.fit(
            data.drop(columns=[target]), data[target], sample_weight=sample_weight, groups=groups
        )
        return fitted

    def read_schema(self, X: Any) -> TableSchema:  # noqa: N803
        """What the columns of training rows are; with a formula, those that it names."""
        if self.formula is None:
            return super().read_schema(X)
        if not isinstance(X, pd.DataFrame):
            raise ValueError(
                f"a formula names columns, so that rows must be a DataFrame; got "
                f"{type(X).__name__}: leave out the formula, or give the columns names"
            )
        frame = X.rename(columns=str)
        formula = read_formula(self.formula, list(frame.columns))
        for name in formula.columns:
            if name not in frame.columns:
                raise ValueError(
                    f"the formula needs the column {name!r}; the columns are: "
                    f"{', '.join(frame.columns)}"
                )
        some = frame[formula.columns].copy()
        for name in formula.categories:
            some[name] = some[name].astype("category")
        return TableSchema.of(some)

    def fit_rows(self, rows: Rows, validation: Rows | None, labels: Labels, seed: int) -> None:
        """Maximise the likelihood of all rows; validation rows are not used."""
        require_table(rows, self)
        self._check_parameters()
        formula = self._read_formula(rows.schema)
        mark_gaps = self.missing != "drop" if self.missing is not None else formula is None
        whole = len(rows)
        if not mark_gaps:
            rows = rows.select(_without_gaps(rows))
            if not len(rows):
                raise ValueError(f"all {whole:,} rows have missing cells: pass missing='indicator'")
        design = make_design(
            rows.table,
            rows.schema,
            formula=formula,
            reference=self.reference,
            all_categories=self.ridge > 0,
            mark_gaps=mark_gaps,
        )
        x = design.matrix(rows.table)
        _require_finite(x, design)
        counted = rows.ranks if rows.weight is None else rows.ranks[rows.weight > 0]
        is_whole = len(np.unique(counted)) == labels.num_classes
        fitted: CumulativeFit | PartialFit
        if self.nonproportional is not None and len(self.nonproportional):
            fitted = fit_partial(
                x,
                rows.ranks,
                labels.num_classes,
                _free_features(design, self.nonproportional),
                link=self.link,
                weight=rows.weight,
            )
        else:
            fitted = fit_cumulative(
                x,
                rows.ranks,
                labels.num_classes,
                link=self.link,
                weight=rows.weight,
                ridge=self.ridge,
                smoothing=0.0 if is_whole else _ABSENT,
            )
        statistics = None
        if self.ridge == 0 and is_whole:
            weights = self._weight_kind(rows)
            statistics = Statistics.of(fitted, x, rows, weights=weights, dropped=whole - len(rows))
            if self.tests:
                statistics = statistics.with_tests(x, rows, design)
        self.design_, self.fitted_, self.statistics_ = design, fitted, statistics
        self.spreads_ = _spreads(design, x)

    def cannot_stream(self) -> str | None:
        """What needs all rows at once: formulas, coefficients for each threshold, and tests."""
        named = [name for name in ("formula", "nonproportional", "tests") if getattr(self, name)]
        return f"cumulative_link with {named[0]} does not stream" if named else None

    def fit_stream(self, known: Survey, seed: int) -> None:
        """Maximise the likelihood of rows that are read once for every step of the way."""
        self._check_parameters()
        schema = known.stream.schema
        mark_gaps = self.missing != "drop"
        design = make_design(
            known.table,
            schema,
            reference=self.reference,
            all_categories=self.ridge > 0,
            mark_gaps=mark_gaps,
        )
        fitted, spreads, counts = fit_streamed(
            known,
            design.matrix,
            None if mark_gaps else _without_gaps,
            link=self.link,
            ridge=self.ridge,
            smoothing=_ABSENT,
        )
        source, statistics = known.stream.source, None
        is_plain = source.weight is None and source.group is None and self.class_weight is None
        if self.ridge == 0 and counts.all() and is_plain:
            statistics = Statistics.of_sums(fitted, counts, known.num_rows - fitted.num_rows)
        self.design_, self.fitted_, self.statistics_ = design, fitted, statistics
        self.spreads_ = np.where(_are_numbers(design), spreads, 1.0)

    def _check_parameters(self) -> None:
        for name, known in (("missing", _MISSING), ("weight_kind", _WEIGHT_KINDS)):
            value = getattr(self, name)
            if value is not None and value not in known:
                listed = " or ".join(map(repr, known))
                raise ValueError(f"{name} must be {listed}, or None; got {value!r}")
        if isinstance(self.nonproportional, str):
            raise ValueError(
                f"nonproportional must be a list of columns, such as "
                f"[{self.nonproportional!r}]; got {self.nonproportional!r}"
            )
        if self.ridge > 0 and self.nonproportional:
            raise ValueError("nonproportional columns have no penalty; pass ridge=0")
        if self.reference is not None and not isinstance(self.reference, Mapping):
            raise ValueError(
                f"reference must be a mapping from column to category; got {self.reference!r}"
            )

    def _read_formula(self, schema: TableSchema) -> Formula | None:
        if self.formula is None:
            return None
        return read_formula(self.formula, [column.name for column in schema.columns])

    def _weight_kind(self, rows: Rows) -> str:
        if rows.weight is None:
            return "none"
        if self.weight_kind is not None:
            return self.weight_kind
        is_count = self.class_weight is None and bool((rows.weight % 1 == 0).all())
        return "frequency" if is_count else "sampling"

    # ---- predicting --------------------------------------------------------------------------

    def curves_of_rows(self, table: RawTable) -> Iterator[RankCurve]:
        """The curves of rows by the link."""
        for start in range(0, max(len(table), 1), _CHUNK):
            chunk = table.rows(slice(start, start + _CHUNK))
            x = self.design_.matrix(chunk)
            undefined = ~np.isfinite(x).all(axis=1)  # the logarithm of what is not above 0
            x[undefined] = 0.0
            logs = self.fitted_.log_probabilities(x)
            logs[undefined] = np.nan
            yield RankCurve(torch.from_numpy(logs))

    def contributions_of_rows(self, table: RawTable) -> OwnContributions:
        """What each column adds to the score of a row, from that of mean features on.

        Columns with a coefficient for each threshold have a score for each; a product of columns
        counts for all of them in equal shares.
        """
        slopes = np.atleast_2d(getattr(self.fitted_, "slopes", self.fitted_.coefficients))
        away = self.design_.matrix(table) - self.fitted_.centre
        names = tuple(column.name for column in self.schema_.columns)
        added = np.zeros((len(table), len(names), len(slopes)))
        for feature, owners in enumerate(self.design_.feature_columns()):
            part = away[:, feature, None] * slopes[:, feature] / len(owners)  # (n, scores)
            for owner in owners:
                added[:, names.index(owner)] += part
        return OwnContributions(
            "the score, from that of the mean row on",
            names,
            np.zeros((len(table), len(slopes))),
            added,
        )

    def add_to_graph(self, graph: Graph) -> str:
        """The features of the columns, the score and the link."""
        return graph.module_of_cells(LinkProbabilities(self.design_, self.fitted_), (TABLE,))

    # ---- statistics --------------------------------------------------------------------------

    def summary(self, errors: str | None = None, level: float = 0.95) -> Summary:
        r"""The statistics of the fit: tables, and all of it as text, LaTeX and JSON.

        Parameters
        ----------
        errors : {"observed", "robust", "clustered"}, optional
            What standard errors come from: the curvature of the likelihood; the sandwich, which
            stays right where the model's variance is wrong; or that by the groups of the fit.
            Without it, clustered where the fit had groups, robust where weights are sampling
            weights, and else observed.
        level : float
            The level of the intervals, such as 0.95.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> frame = pd.DataFrame({"dose": rng.normal(size=300)})
        >>> pain = np.digitize(frame["dose"] + rng.logistic(size=300), [-1.0, 1.0])
        >>> summary = CumulativeLinkModel(tests=True).fit(frame, pain).summary()
        >>> summary.frame()[["estimate", "error", "ratio_lower", "ratio_upper"]].round(2)
              estimate  error  ratio_lower  ratio_upper
        name
        dose      1.16   0.13         2.44         4.13
        >>> print(summary.text().partition("\n\n")[0])
        model             proportional odds (logit)
        rows              300
        classes           0 85, 1 122, 2 93
        log-likelihood    -279.0603, without columns -325.8871
        likelihood ratio  chi-square 93.653 on 1 degrees of freedom, p <0.001
        fit               AIC 564.12, BIC 575.23, McFadden 0.1437
        errors            by the observed information
        """
        return self._known_statistics().summary(
            self.design_, self.classes_.tolist(), errors=errors, level=level
        )

    def _known_statistics(self) -> Statistics:
        check_is_fitted(self, "labels_")
        if self.statistics_ is None:
            reason = (
                "a penalised fit has no standard errors; fit with ridge=0"
                if self.fitted_parameters_.get("ridge", 0)
                else "a class has no rows, so that its cut-points cannot be told, or rows with "
                "weights or groups were streamed; leave the class out, or read the rows into memory"
            )
            raise ValueError(f"this model has no statistics: {reason}")
        return self.statistics_

    def marginal_effects(
        self,
        X: Any,  # noqa: N803
        *,
        sample_weight: ArrayLike | None = None,
        errors: str | None = None,
        level: float = 0.95,
    ) -> pd.DataFrame:
        """The average change of each P(y = k) when a column changes, over some rows.

        Of a number it is the derivative, in the unit of the column, of one that is 0 or 1 the step
        from 0 to 1, of a category the step from the reference. Errors are by the delta method, with
        the rows as they are.

        Parameters
        ----------
        X
            Rows to average over.
        sample_weight : array-like, shape (n,), optional
            What each row counts for; without it, each counts alike.
        errors, level
            As for :meth:`summary`.
        """
        statistics = self._known_statistics()
        table = self.schema_.read(X)
        weight = None if sample_weight is None else as_weight(sample_weight, length=len(table))
        effects = average_effects(statistics.estimates, self.design_, self.schema_, table, weight)
        shown = replace(statistics, effects=effects)
        summary = shown.summary(self.design_, self.classes_.tolist(), errors, level)
        return summary.effects_frame()

    def probabilities_at(
        self,
        values: Mapping[str, Any] | pd.DataFrame,
        *,
        errors: str | None = None,
        level: float = 0.95,
    ) -> pd.DataFrame:
        """P(y = k) at given values, with intervals by the delta method on the scale of log-odds.

        Parameters
        ----------
        values : mapping from column to a value or a list of them, or DataFrame
            Of a mapping every combination is taken. Columns that are not named are at their
            median, or at their most frequent category.
        errors, level
            As for :meth:`summary`.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> frame = pd.DataFrame({"dose": rng.normal(size=300)})
        >>> pain = np.digitize(frame["dose"] + rng.logistic(size=300), [-1.0, 1.0])
        >>> model = CumulativeLinkModel().fit(frame, pain)
        >>> model.probabilities_at({"dose": [-1, 1]}).round(2)
           dose  class  probability  error  lower  upper
        0    -1      0         0.48   0.04   0.40   0.57
        1    -1      1         0.41   0.03   0.35   0.48
        2    -1      2         0.10   0.02   0.07   0.15
        3     1      0         0.09   0.02   0.06   0.13
        4     1      1         0.37   0.03   0.31   0.44
        5     1      2         0.54   0.04   0.46   0.62
        """
        statistics = self._known_statistics()
        _, covariance = statistics.covariance(errors)
        frame = values if isinstance(values, pd.DataFrame) else _combinations(values)
        x = self.design_.matrix(self._table_at(frame))
        _require_finite(x, self.design_)
        probabilities, deviations = probabilities_with_errors(statistics.estimates, x, covariance)
        if statistics.separated:
            deviations = np.full_like(probabilities, np.nan)
        lower, upper = probability_intervals(probabilities, deviations, level)
        count, num_classes = probabilities.shape
        given = frame.loc[frame.index.repeat(num_classes)].reset_index(drop=True)
        found_frame: pd.DataFrame = given.assign(
            **{
                "class": np.tile(self.classes_, count),
                "probability": probabilities.reshape(-1),
                "error": deviations.reshape(-1),
                "lower": lower.reshape(-1),
                "upper": upper.reshape(-1),
            }
        )
        return found_frame

    def _table_at(self, frame: pd.DataFrame) -> RawTable:
        """Rows with the given columns, and the typical value of all others."""
        known = [column.name for column in self.schema_.columns]
        unknown = [str(name) for name in frame.columns if str(name) not in known]
        if unknown:
            raise ValueError(f"the model has no column {unknown[0]!r}; it has: {', '.join(known)}")
        frame = frame.rename(columns=str)
        numbers = np.tile(self.design_.centre.numpy(), (len(frame), 1))
        codes = np.zeros((len(frame), len(self.schema_.categorical)), dtype=np.int64)
        for place, column in enumerate(self.schema_.measured):
            if column.name in frame:
                numbers[:, place] = numbers_of(frame[column.name], column, Remarks())
        frequent = {row["name"]: row.get("frequent") or {} for row in self.columns_}
        for place, column in enumerate(self.schema_.categorical):
            if column.name in frame:
                codes[:, place] = codes_of(frame[column.name], column.categories)
                if (codes[:, place] == 0).any():
                    raise ValueError(
                        f"{column.name!r} must be one of {', '.join(column.categories[:20])}; got "
                        f"{frame[column.name].tolist()[:5]}"
                    )
                continue
            shares = frequent.get(column.name, {})
            typical = max(shares, key=lambda name: shares[name]) if shares else None
            if typical in column.categories:
                codes[:, place] = column.categories.index(typical) + 1
        return RawTable(numbers, codes)

    def coefficients(self) -> dict[str, float]:
        """What each feature adds to the score; a larger score means a higher rank.

        Numbers are in units of their standard deviation, and a reference category adds 0. Of
        columns with a coefficient for each threshold it is the mean.
        """
        check_is_fitted(self, "labels_")
        scaled = self.fitted_.coefficients * self.spreads_
        coefficients = dict(zip(self.design_.feature_names(), scaled.tolist(), strict=True))
        return coefficients | {
            f"{name} = {category}": 0.0 for name, category in self.design_.references.items()
        }

    def outcome(self) -> dict[str, Any]:
        """The coefficients, and the statistics where there are such."""
        outcome: dict[str, Any] = {"coefficients": self.coefficients()}
        if self.statistics_ is not None:
            outcome["statistics"] = self.summary().document()
        return outcome

    # ---- files -------------------------------------------------------------------------------

    def describe_model(self) -> Described:
        """Features, coefficients, cut-points and statistics."""
        fit = describe_fit(self.fitted_)
        tensors = {f"{_FIT}{name}": tensor for name, tensor in fit.tensors.items()}
        tensors |= {
            f"{_DESIGN}{name}": tensor for name, tensor in self.design_.state_dict().items()
        }
        tensors["spreads"] = torch.from_numpy(self.spreads_)
        document = {"design": self.design_.document(), "fit": fit.document, "statistics": None}
        if self.statistics_ is not None:
            statistics = describe_statistics(self.statistics_)
            document["statistics"] = statistics.document
            tensors |= {f"{_STATISTICS}{k}": v for k, v in statistics.tensors.items()}
        return Described(document, tensors)

    def rebuild_model(self, described: Described) -> None:
        """The model that a file describes, which is not trusted."""
        document, tensors = described
        rooms: dict[str, dict[str, Tensor]] = {_DESIGN: {}, _FIT: {}, _STATISTICS: {}}
        for name, tensor in tensors.items():
            room = f"{name.partition('.')[0]}."
            if room in rooms:
                rooms[room][name.removeprefix(room)] = tensor
            elif name != "spreads":
                raise ValueError("it has tensors that have no place in a cumulative link model")
        design = read_design(
            typed(document["design"], dict, "design"), rooms[_DESIGN], self.schema_
        )
        fit = rebuild_fit(
            Described(typed(document["fit"], dict, "fit"), rooms[_FIT]),
            design.num_features,
            self.labels_.num_classes,
        )
        spreads = tensors["spreads"]
        if spreads.dtype != torch.float64 or spreads.shape != (design.num_features,):
            raise ValueError("its spreads do not fit its features")
        statistics = None
        if document["statistics"] is not None:
            described = Described(
                typed(document["statistics"], dict, "statistics"), rooms[_STATISTICS]
            )
            statistics = rebuild_statistics(described, fit)
        self.design_, self.fitted_, self.statistics_ = design, fit, statistics
        self.spreads_ = spreads.numpy()


def _without_gaps(rows: Rows) -> Any:
    """Which rows have no missing cell, (n,)."""
    return ~np.isnan(rows.table.numbers).any(axis=1) & (rows.table.codes > 0).all(axis=1)


def _require_finite(x: Matrix, design: Design) -> None:
    wrong = ~np.isfinite(x)
    if wrong.any():
        place = int(np.flatnonzero(wrong.any(axis=0))[0])
        raise ValueError(
            f"{design.feature_names()[place]} has no finite value in {int(wrong[:, place].sum()):,}"
            f" rows; shift the column, or leave those rows out"
        )


def _free_features(design: Design, names: Sequence[str]) -> list[int]:
    """The features of some columns or terms."""
    free = set()
    for name in names:
        places = [
            place
            for place, feature in enumerate(design.features)
            if name == feature.term or any(atom.column == name for atom in feature.atoms)
        ]
        if not places:
            raise ValueError(
                f"nonproportional names {name!r}, which is no term of the model; they are: "
                f"{', '.join(design.terms)}"
            )
        free |= set(places)
    return sorted(free)


def _are_numbers(design: Design) -> list[bool]:
    """Which features are numbers, (d,)."""
    return [
        any(atom.kind in ("number", "expression") for atom in feature.atoms)
        for feature in design.features
    ]


def _spreads(design: Design, x: Matrix) -> Matrix:
    """The standard deviation of features that are numbers, and 1 for others, (d,)."""
    largest = np.abs(x).max(axis=0, initial=1.0)
    spreads: Matrix = np.where(_are_numbers(design), np.std(x / largest, axis=0) * largest, 1.0)
    return spreads


def _combinations(values: Mapping[str, Any]) -> pd.DataFrame:
    """Every combination of the values of some columns."""
    lists = {
        name: list(value) if isinstance(value, (list, tuple, np.ndarray, pd.Series)) else [value]
        for name, value in values.items()
    }
    count = int(np.prod([len(each) for each in lists.values()], dtype=float))
    if not lists or not 1 <= count <= _MOST_PLACES:
        raise ValueError(
            f"values must name columns and what they are, in 1 to {_MOST_PLACES:,} combinations; "
            f"got {count:,} of {list(lists)}"
        )
    combined = zip(*product(*lists.values()), strict=True)
    named = zip(lists, combined, strict=True)
    frame: pd.DataFrame = pd.DataFrame({name: list(each) for name, each in named})
    return frame
