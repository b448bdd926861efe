"""The cumulative link model P(y <= k) = F(cutpoint_k - x . coefficients), fitted to the maximum.

Everything here is in the units of the features; what happens on the way to the maximum stands in
:mod:`echelon.models.likelihood_ascent`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon.models.arguments import as_features, as_ranks, as_weight
from echelon.models.likelihood_ascent import (
    Ascent,
    Likelihood,
    Maximum,
    curve_of_scores,
    row_terms,
    solve,
)
from echelon.models.links import Array, link_of

_WIDE = 300  # from this many columns on, L-BFGS comes near the maximum for less than Newton


@dataclass(frozen=True)
class CumulativeFit:
    """A fitted cumulative link model of d features and K ranks.

    Attributes
    ----------
    link : str
    coefficients : array, shape (d,)
        A positive one raises the rank. 0 for aliased columns.
    centre : array, shape (d,)
        The means of the features.
    centred_cutpoints : array, shape (K-1,)
        The cutpoints for features from which the means were subtracted, which no large offset of
        a column can round away.
    log_likelihood, null_log_likelihood : float
        Of the rows, weighted; the second without any feature, from the shares of the classes.
    covariance : array, shape (d+K-1, d+K-1)
        The inverse of the observed information of the coefficients and then the cutpoints (with
        its penalty, if there is one); NaN for aliased columns.
    iterations : int
        Newton steps.
    converged : bool
    aliased : tuple of int
        Columns that are constant or, without a penalty, a linear function of columns before them.
    separated : bool
        Whether some direction of the features divides the ranks without error, so that the
        likelihood rises for ever along it and standard errors mean nothing.
    ridge, smoothing : float
        As they were given.
    num_rows : int
        Rows with a weight above 0.
    """

    link: str
    coefficients: Array
    centre: Array
    centred_cutpoints: Array
    log_likelihood: float
    null_log_likelihood: float
    covariance: Array
    iterations: int
    converged: bool
    aliased: tuple[int, ...]
    separated: bool
    ridge: float
    smoothing: float
    num_rows: int

    @property
    def cutpoints(self) -> Array:
        """Where the ranks meet on the scale of the score x . coefficients, (K-1,), ascending."""
        return self.centred_cutpoints + float(self.centre @ self.coefficients)

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.centred_cutpoints) + 1

    def log_probabilities(self, features: ArrayLike) -> Array:
        """log P(y = k), (n, K), of features (n, d).

        Examples
        --------
        >>> x, ranks = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
        >>> fit = fit_cumulative(x, ranks, 2)
        >>> np.exp(fit.log_probabilities(x)).round(3)
        array([[0.796, 0.204],
               [0.612, 0.388],
               [0.388, 0.612],
               [0.204, 0.796]])
        """
        x = as_features(features, columns=len(self.coefficients))
        return curve_of_scores(
            link_of(self.link), (x - self.centre) @ self.coefficients, self.centred_cutpoints
        )


class RidgeChoice(NamedTuple):
    """The best penalty, the penalties that were tried (ascending) and the score of each."""

    ridge: float
    ridges: Array
    scores: Array


def fit_cumulative(
    features: ArrayLike,
    ranks: ArrayLike,
    num_classes: int,
    *,
    link: str = "logit",
    weight: ArrayLike | None = None,
    ridge: float = 0.0,
    smoothing: float = 0.0,
) -> CumulativeFit:
    """The coefficients and cutpoints of the largest likelihood (McCullagh 1980).

    Damped Newton steps with the exact information, from the shares of the classes; a step takes
    O(n d^2 + (d+K)^3). For more than 300 columns L-BFGS takes most of the way.

    Parameters
    ----------
    features : array-like, shape (n, d)
        Finite numbers, without a constant; d may be 0.
    ranks : array-like, shape (n,)
        Integers 0..K-1, each of them there unless `smoothing` is above 0.
    num_classes : int
        K, at least 2.
    link : {"logit", "probit", "cloglog"}
    weight : array-like, shape (n,), optional
        What each row counts for.
    ridge : float
        The penalty ridge/2 times the squared length of the coefficients of standardised columns
        is subtracted from the log-likelihood: normal coefficients with this precision.
    smoothing : float
        The weight of a row with mean features that is added to every class. With any above 0 a
        class without rows keeps a probability, so that a fold of few rows can be fitted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 2))
    >>> latent = x @ [1.0, -2.0] + rng.logistic(size=2000)
    >>> fit = fit_cumulative(x, np.digitize(latent, [-1.0, 1.0]), 3)
    >>> fit.coefficients.round(1), fit.cutpoints.round(1)
    (array([ 1. , -1.9]), array([-0.9,  0.9]))
    >>> np.sqrt(np.diag(fit.covariance)).round(2)
    array([0.06, 0.07, 0.06, 0.06])
    """
    problem = Likelihood.of(features, ranks, num_classes, link, weight, ridge, smoothing)
    beta, cuts = problem.start()
    if problem.width > _WIDE:
        beta, cuts = problem.approach(beta, cuts)
    maximum = problem.maximise(beta, cuts)
    return in_raw_units(problem, maximum)


def choose_ridge(
    features: ArrayLike,
    ranks: ArrayLike,
    num_classes: int,
    folds: ArrayLike,
    *,
    link: str = "logit",
    weight: ArrayLike | None = None,
    smoothing: float = 0.5,
    score: str = "log",
    ridges: Sequence[float] | None = None,
) -> RidgeChoice:
    """The penalty whose fits predict left-out folds best.

    From the strongest penalty to the weakest, every fold's fit starts where its last one ended,
    and the path ends early when weaker penalties only do harm.

    Parameters
    ----------
    features, ranks, num_classes, link, weight, smoothing
        As for :func:`fit_cumulative`. (Smoothing, because a fold may leave a class without rows.)
    folds : array-like, shape (n,)
        The fold of each row, any integers; rows that belong together are in one fold.
    score : {"log", "rps"}
        The mean -log P(y), or the ranked probability score.
    ridges : sequence of float, optional
        The penalties to try; without it a logarithmic grid from 0.01 to ten times the rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 20))  # one column says something, 19 do not
    >>> ranks = np.digitize(x[:, 0] + rng.logistic(size=200), [-1.0, 1.0])
    >>> choice = choose_ridge(x, ranks, 3, np.arange(200) % 5)
    >>> bool(10 < choice.ridge < 1000)
    True
    """
    x, y = as_features(features), as_ranks(ranks, num_classes)
    if len(x) != len(y):
        raise ValueError(f"features have {len(x)} rows and ranks {len(y)}; each row needs a rank")
    given = as_weight(weight, len(y))
    fold_of = np.asarray(folds)
    names = np.unique(fold_of)
    if fold_of.shape != y.shape or len(names) < 2:
        raise ValueError(
            f"folds must give one of at least 2 folds for each of the {len(y)} rows; got the shape "
            f"{fold_of.shape} with {len(names)} folds"
        )
    if score not in ("log", "rps"):
        raise ValueError(f"score must be 'log' or 'rps'; got {score!r}")
    largest = np.log10(10 * max(len(y), 10))
    grid = 10.0 ** np.arange(-2.0, largest + 0.25, 0.5) if ridges is None else np.unique(ridges)
    problems: list[tuple[Likelihood, NDArray[np.bool_]]] = []
    for name in names:
        out = fold_of == name
        if given[out].sum() == 0 or given[~out].sum() == 0:
            continue
        inside = x[~out], y[~out], num_classes, link, given[~out], float(grid[-1]), smoothing
        problems.append((Likelihood.of(*inside), out))
    states = [problem.start() for problem, _ in problems]
    scores = np.full(len(grid), np.inf)
    best = len(grid) - 1
    for place in reversed(range(len(grid))):
        total = 0.0
        for index, (problem, out) in enumerate(problems):
            penalised = problem.with_ridge(float(grid[place]))
            maximum = penalised.maximise(*states[index])
            states[index] = maximum.beta, maximum.cuts
            eta = penalised.standardised(x[out]) @ maximum.beta
            logs = curve_of_scores(penalised.link, eta, maximum.cuts)
            total += float(given[out] @ _loss(logs, y[out], score))
        scores[place] = total / given.sum()
        if scores[place] <= scores[best]:
            best = place
        elif best - place >= 4:  # two decades weaker than the best, and no better
            break
    tried = np.isfinite(scores)
    return RidgeChoice(float(grid[best]), grid[tried], scores[tried])


def row_scores(fit: CumulativeFit, features: ArrayLike, ranks: ArrayLike) -> Array:
    """The derivative of each row's log-likelihood, (n, d+K-1), without weights and penalty.

    Columns are those of `fit.covariance`: the coefficients, then the cutpoints. At the maximum of
    an unpenalised fit they sum to 0, but for aliased columns, which are 0 throughout.

    Examples
    --------
    >>> x, ranks = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    >>> bool(np.allclose(row_scores(fit_cumulative(x, ranks, 2), x, ranks).sum(0), 0))
    True
    """
    x = as_features(features, columns=len(fit.coefficients))
    y = as_ranks(ranks, fit.num_classes, length=len(x))
    eta = (x - fit.centre) @ fit.coefficients
    rows = row_terms(link_of(fit.link), eta, y, fit.centred_cutpoints)
    scores = np.zeros((len(x), x.shape[1] + fit.num_classes - 1))
    scores[:, : x.shape[1]] = -rows.shift[:, None] * x
    scores[:, list(fit.aliased)] = 0.0
    at_cut = scores[:, x.shape[1] :]
    everywhere = np.arange(len(x))
    below_top, above_bottom = y < fit.num_classes - 1, y > 0
    at_cut[everywhere[below_top], y[below_top]] = rows.upper[below_top]
    at_cut[everywhere[above_bottom], y[above_bottom] - 1] = rows.lower[above_bottom]
    return scores


def robust_covariance(
    fit: CumulativeFit,
    features: ArrayLike,
    ranks: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
) -> Array:
    """The sandwich covariance, (d+K-1, d+K-1), which does not believe the model's own variance.

    Parameters
    ----------
    fit : CumulativeFit
    features, ranks, weight
        The rows of the fit.
    clusters : array-like, shape (n,), optional
        What each row belongs to, for rows that are alike within a cluster; without it every row
        is a cluster. G clusters bring the factor G / (G-1).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(500, 1))
    >>> ranks = np.digitize(x[:, 0] + rng.logistic(size=500), [-1.0, 1.0])
    >>> fit = fit_cumulative(x, ranks, 3)
    >>> once = robust_covariance(fit, x, ranks)
    >>> twice = np.repeat(x, 2, 0), np.repeat(ranks, 2)
    >>> copies = robust_covariance(fit_cumulative(*twice, 3), *twice, clusters=np.arange(1000) // 2)
    >>> bool(np.allclose(once, copies))
    True
    """
    scores = row_scores(fit, features, ranks)
    scores *= as_weight(weight, len(scores))[:, None]
    if clusters is not None:
        labels: NDArray[np.generic] = np.asarray(clusters)
        if labels.shape != (len(scores),):
            raise ValueError(
                f"clusters must have {len(scores)} values, one for each row; got the shape "
                f"{labels.shape}"
            )
        _, place = np.unique(labels, return_inverse=True)
        summed = np.zeros((int(place.max()) + 1, scores.shape[1]))
        np.add.at(summed, place.reshape(-1), scores)
        scores = summed
    scores = scores[np.abs(scores).any(1)]  # rows that count for nothing are no clusters
    if len(scores) < 2:
        raise ValueError("a robust covariance needs at least 2 clusters; got one")
    kept = np.isfinite(np.diag(fit.covariance))
    bread = fit.covariance[np.ix_(kept, kept)]
    half = scores[:, kept] @ bread
    covariance = np.full_like(fit.covariance, np.nan)
    covariance[np.ix_(kept, kept)] = half.T @ half * (len(scores) / (len(scores) - 1))
    return covariance


def _loss(logs: Array, ranks: NDArray[np.int64], score: str) -> Array:
    """The score of each row, (n,), where less is better."""
    if score == "log":
        return -np.maximum(logs[np.arange(len(ranks)), ranks], np.log(np.finfo(float).tiny))
    at_most = np.exp(logs).cumsum(1)[:, :-1]
    squared: Array = ((at_most - (ranks[:, None] <= np.arange(logs.shape[1] - 1))) ** 2).sum(1)
    return squared


def in_raw_units(problem: Ascent, maximum: Maximum) -> CumulativeFit:
    """What was found, in the units of the features."""
    p, d, cut_places = problem.width, len(problem.kept), problem.num_classes - 1
    coefficients = np.zeros(d)
    coefficients[problem.kept] = maximum.beta / problem.scale[problem.kept]
    log_likelihood, mass, num_rows = problem.of_rows(maximum.beta, maximum.cuts)
    present = mass[mass > 0]
    null = float(present @ np.log(present / present.sum()))
    # from standardised to raw: coefficients are divided, and cutpoints move with the means
    jacobian = np.eye(p + cut_places)
    jacobian[range(p), range(p)] = 1 / problem.scale[problem.kept]
    jacobian[p:, :p] = problem.centre[problem.kept] / problem.scale[problem.kept]
    places = np.append(np.flatnonzero(problem.kept), d + np.arange(cut_places))
    covariance = np.full((d + cut_places, d + cut_places), np.nan)
    inverse = solve(maximum.information, np.eye(p + cut_places))
    covariance[np.ix_(places, places)] = jacobian @ inverse @ jacobian.T
    return CumulativeFit(
        link=problem.link.name,
        coefficients=coefficients,
        centre=problem.centre,
        centred_cutpoints=maximum.cuts,
        log_likelihood=log_likelihood,
        null_log_likelihood=null,
        covariance=covariance,
        iterations=maximum.iterations,
        converged=maximum.converged,
        aliased=tuple(np.flatnonzero(~problem.kept).tolist()),
        separated=problem.ridge == 0 and problem.is_flat(maximum),
        ridge=problem.ridge,
        smoothing=problem.smoothing,
        num_rows=num_rows,
    )
