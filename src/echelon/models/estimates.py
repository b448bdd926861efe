"""What inference needs of a fitted cumulative link model: parameters, and what depends on them.

P(y <= k) = F(c_k - x.b_k) is linear in the parameters inside F, whether slopes are equal or free,
so that scores, probabilities and their derivatives are written once.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echelon.models.cumulative import CumulativeFit
from echelon.models.likelihood_ascent import interval_terms, log_interval
from echelon.models.links import Array, Link, link_of
from echelon.models.partial import PartialFit, slope_places

_NARROWEST = 1e-300


@dataclass(frozen=True)
class Estimates:
    """m parameters of d features and K ranks, in the units of the features.

    Attributes
    ----------
    link : str
    theta : array, shape (m,)
        The coefficients, then the K-1 cut-points.
    places : array of int, shape (K-1, d)
        Which parameter is the slope of each feature at each threshold.
    centre, centred_cuts : array, shape (d,) and (K-1,)
        The means of the features, and the cut-points for features without them, which no large
        offset of a column can round away.
    covariances : mapping from kind of errors to array, shape (m, m)
        "observed", "robust" and, where rows have groups, "clustered"; NaN for aliased features.
    """

    link: str
    theta: Array
    places: NDArray[np.int64]
    centre: Array
    centred_cuts: Array
    covariances: Mapping[str, Array]

    @classmethod
    def of(cls, fit: CumulativeFit | PartialFit) -> "Estimates":
        """The parameters of a fit and their covariance by the observed information."""
        d, num_classes = len(fit.centre), fit.num_classes
        free = getattr(fit, "free", ())
        places = slope_places(d, free, num_classes)
        slopes = np.broadcast_to(getattr(fit, "slopes", fit.coefficients), (num_classes - 1, d))
        theta = np.zeros(len(fit.covariance))
        theta[places] = slopes
        theta[len(theta) - num_classes + 1 :] = fit.cutpoints
        return cls(
            fit.link,
            theta,
            places,
            fit.centre,
            fit.centred_cutpoints,
            {"observed": fit.covariance},
        )

    @property
    def num_cuts(self) -> int:
        """K-1."""
        return len(self.places)

    @property
    def cut_places(self) -> NDArray[np.int64]:
        """Which parameters are the cut-points, (K-1,)."""
        size = len(self.theta)
        return np.arange(size - self.num_cuts, size)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which parameters are estimated, and not aliased, (m,)."""
        return np.isfinite(np.diag(self.covariances["observed"]))

    def ends(self, x: Array) -> Array:
        """c_k - x.b_k of each row, (n, K-1)."""
        ends: Array = self.centred_cuts - (x - self.centre) @ self.theta[self.places].T
        return ends

    def probabilities(self, x: Array) -> Array:
        """P(y = k) of each row, (n, K)."""
        at_most = _cdf(link_of(self.link), self.ends(x))
        return np.diff(at_most, axis=1, prepend=0.0, append=1.0)

    def gradient(self, x: Array, weight: Array) -> Array:
        """The derivative of the weighted sum of P(y = k) by the parameters, (K, m)."""
        density = np.exp(link_of(self.link).log_density(self.ends(x)))
        at_most = np.zeros((self.num_cuts + 2, len(self.theta)))
        weighted = weight[:, None] * density
        slopes = weighted.T @ x  # (K-1, d)
        for k in range(self.num_cuts):
            at_most[k + 1, self.cut_places[k]] = weighted[:, k].sum()
            at_most[k + 1, self.places[k]] -= slopes[k]
        return np.diff(at_most, axis=0)

    def row_scores(self, x: Array, ranks: NDArray[np.int64]) -> Array:
        """The derivative of each row's log-likelihood by the parameters, (n, m)."""
        ends, rows = self.ends(x), np.arange(len(x))
        lower = np.concatenate([np.zeros((len(x), 1)), ends], axis=1)[rows, ranks]
        upper = np.concatenate([ends, np.zeros((len(x), 1))], axis=1)[rows, ranks]
        inner = (ranks > 0) & (ranks < self.num_cuts)
        widths = np.where(inner, np.maximum(upper - lower, _NARROWEST), 1.0)
        link = link_of(self.link)
        logs = log_interval(link, lower, upper, widths, ranks, self.num_cuts)
        terms = interval_terms(link, lower, upper, logs, ranks, self.num_cuts)
        scores = np.zeros((len(x), len(self.theta)))
        for k in range(self.num_cuts):
            for chosen, slope in ((ranks == k, terms.upper), (ranks == k + 1, terms.lower)):
                places = np.flatnonzero(chosen)
                scores[places, self.cut_places[k]] += slope[places]
                # features of one term never share a parameter, so that nothing is added twice
                scores[np.ix_(places, self.places[k])] -= slope[places, None] * x[places]
        scores[:, ~self.known] = 0.0
        return scores

    def sandwich(
        self, scores: Array, weight: Array, are_copies: bool, groups: NDArray[np.int64] | None
    ) -> Array:
        """The covariance that does not believe the model's own variance, (m, m).

        Parameters
        ----------
        scores : array, shape (n, m)
        weight : array, shape (n,)
        are_copies : bool
            Whether a weight of w says that there are w such rows.
        groups : array of int, shape (n,), optional
            Rows of one group depend on each other; without it none do.
        """
        if groups is not None:
            weighted = weight[:, None] * scores
            summed = np.zeros((int(groups.max()) + 1, scores.shape[1]))
            np.add.at(summed, groups, weighted)
            summed = summed[np.bincount(groups, weight > 0) > 0]
            count = float(len(summed))
        else:
            summed = (np.sqrt(weight) if are_copies else weight)[:, None] * scores
            count = float(weight.sum() if are_copies else (weight > 0).sum())
        known = self.known
        bread = self.covariances["observed"][np.ix_(known, known)]
        half = summed[:, known] @ bread
        covariance = np.full((len(known), len(known)), np.nan)
        if count > 1:
            covariance[np.ix_(known, known)] = half.T @ half * count / (count - 1)
        return covariance


def _cdf(link: Link, ends: Array) -> Array:
    return np.exp(link.log_cdf(ends))
