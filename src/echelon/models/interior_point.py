"""A primal-dual interior-point method for one score with large margins among cutpoints.

Mehrotra's predictor and corrector, from a point that need not be feasible. Every step solves one
system in the coefficients and cutpoints; what belongs to a single pair of a row and a threshold is
eliminated by hand, without subtracting numbers that are nearly equal.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from echelon.models.links import Array

Mask = NDArray[np.bool_]

_MOST_STEPS = 200
_NEARLY = 0.995  # of the way to the border
_SMALLEST = 1e-10  # step, below which rounding keeps the point where it is
_ROUNDING = 1e-15


@dataclass(frozen=True)
class Demands:
    """min 1/2 z'Pz + sum of cost times slack, where every margin + slack is at least 1.

    The unknowns z are coefficients w (d,), and then parameters of the cutpoints b = T theta, (q,).

    Attributes
    ----------
    features : array, shape (n, d)
    sign : array, shape (n, K-1)
        1 where the score is to lie above the cutpoint, -1 where below, 0 where a pair counts not.
    cost : array, shape (n, K-1)
        Above 0.
    to_cutpoints : array, shape (K-1, q)
        T.
    penalty : array, shape (d + q,)
        The diagonal of P.
    ordered : bool
        Whether b_k <= b_(k+1) is demanded, without slack.
    """

    features: Array
    sign: Array
    cost: Array
    to_cutpoints: Array
    penalty: Array
    ordered: bool

    def cutpoints(self, point: Array) -> Array:
        """b, (K-1,)."""
        cutpoints: Array = self.to_cutpoints @ point[self.features.shape[1] :]
        return cutpoints

    def margins(self, point: Array) -> Array:
        """s (x.w - b_k), (n, K-1)."""
        scores = self.features @ point[: self.features.shape[1]]
        return self.sign * (scores[:, None] - self.cutpoints(point))

    def steps(self, point: Array) -> Array:
        """Between neighbouring cutpoints, (K-2,), or nothing where their order is not demanded."""
        return np.diff(self.cutpoints(point)) if self.ordered else np.zeros(0)

    def transposed(self, pairs: Array, steps: Array) -> Array:
        """What multipliers of margins and of steps do to the unknowns, (d + q,)."""
        signed = self.sign * pairs
        of_cutpoints = -signed.sum(0)
        if self.ordered:
            of_cutpoints = of_cutpoints - np.diff(np.concatenate([[0.0], steps, [0.0]]))
        return np.concatenate([signed.sum(1) @ self.features, of_cutpoints @ self.to_cutpoints])

    def curvature(self, pairs: Array, steps: Array) -> Array:
        """P + A'WA for weights W of margins and of steps, (d + q, d + q)."""
        d = self.features.shape[1]
        of_rows = self.features * np.sqrt(pairs.sum(1))[:, None]
        whole = np.diag(self.penalty)
        whole[:d, :d] += of_rows.T @ of_rows
        whole[:d, d:] = -(self.features.T @ pairs) @ self.to_cutpoints
        whole[d:, :d] = whole[:d, d:].T
        between = np.diag(pairs.sum(0))
        if self.ordered:
            differences = np.diff(np.eye(len(between)), axis=0)  # (K-2, K-1)
            between = between + (differences.T * steps) @ differences
        whole[d:, d:] += self.to_cutpoints.T @ between @ self.to_cutpoints
        np.einsum("ii->i", whole)[:] *= 1 + _ROUNDING
        return whole

    def objective(self, point: Array) -> float:
        """Of a point, with the least slacks that it needs."""
        short = np.maximum(1 - self.margins(point), 0) * (self.sign != 0)
        return float(self.penalty @ point**2) / 2 + float((self.cost * short).sum())


class Minimum(NamedTuple):
    """The best point, its objective, the relative distance to a bound, and how many steps.

    `duals` (n,) say what each row gives to the coefficients: w is the sum of dual times features.
    """

    point: Array
    duals: Array
    objective: float
    gap: float
    steps: int


class _State(NamedTuple):
    """A point, and what keeps it inside; or by how much each of these moves.

    `room` is by how much margin + slack exceeds 1; `multiplier` belongs to it, `spare` to the
    slack, and the two add up to the cost. Steps between cutpoints have room and multipliers too.
    """

    point: Array
    room: Array
    slack: Array
    multiplier: Array
    spare: Array
    step_room: Array
    step_multiplier: Array

    def moved(self, moves: "_State", size: float) -> "_State":
        return _State(*(a + size * b for a, b in zip(self, moves, strict=True)))

    def reach(self, moves: "_State", counts: Mask) -> float:
        """How much of the moves can be made before anything but the point gets negative."""
        most = 1.0
        for values, changes in zip(self[1:], moves[1:], strict=True):
            falls = (changes < 0) & counts if changes.ndim == 2 else changes < 0
            if falls.any():
                most = min(most, float((-values[falls] / changes[falls]).min()))
        return most

    def gap(self, counts: Mask) -> float:
        pairs = (self.room * self.multiplier + self.slack * self.spare)[counts].sum()
        return float(pairs) + float(self.step_room @ self.step_multiplier)


def minimise(demands: Demands, tolerance: float) -> Minimum:
    """The unknowns of the smallest objective.

    Parameters
    ----------
    demands : Demands
    tolerance : float
        Of the distance between the objective and its bound, and of all residuals, relative to the
        objective.

    Examples
    --------
    >>> sign = np.array([[-1.0], [1.0]])
    >>> pair = Demands(np.array([[0.0], [1.0]]), sign, np.full((2, 1), 9.0), np.eye(1),
    ...                np.array([1.0, 0.0]), ordered=False)
    >>> minimise(pair, 1e-10).point.round(6)  # the cutpoint is half the way, at margins of 1
    array([2., 1.])
    """
    state = _start(demands)
    counts = demands.sign != 0
    num_demands = 2 * int(counts.sum()) + len(state.step_room)
    best, least = Minimum(state.point, np.zeros(len(counts)), np.inf, np.inf, 0), np.inf
    for taken in range(_MOST_STEPS):
        dual = demands.penalty * state.point - demands.transposed(
            state.multiplier, state.step_multiplier
        )
        primal = (demands.margins(state.point) + state.slack - 1 - state.room) * counts
        step_primal = demands.steps(state.point) - state.step_room
        residuals = _Residuals(dual, primal, step_primal)
        gap, objective = state.gap(counts), demands.objective(state.point)
        bound = float(state.multiplier[counts].sum())
        bound -= float(demands.penalty @ state.point**2) / 2
        scale = 1 + abs(objective)
        relative = max(abs(objective - bound), gap) / scale
        away = residuals.largest() / scale
        if max(relative, away) < least:
            duals = (demands.sign * state.multiplier).sum(1)
            best = Minimum(state.point, duals, objective, relative, taken)
            least = max(relative, away)
        if least < tolerance or not np.isfinite(objective):
            break
        try:
            newton = _Newton(demands, state, residuals)
        except (np.linalg.LinAlgError, ValueError):
            break  # float64 gives no better
        predicted = newton.direction(0.0, None)
        size = state.reach(predicted, counts)
        left = max(state.moved(predicted, size).gap(counts), 0.0)
        moves = newton.direction(gap / num_demands * (left / gap) ** 3, predicted)
        size = min(1.0, _NEARLY * state.reach(moves, counts))
        if size < _SMALLEST:
            break
        state = state.moved(moves, size)
    return best


class _Residuals(NamedTuple):
    """By how much the derivative, the margins and the steps miss what they should be."""

    dual: Array
    primal: Array
    step_primal: Array

    def largest(self) -> float:
        return max(float(np.abs(each).max()) for each in self if each.size)


class _Newton:
    """The system of one step, factorised once for its two directions."""

    def __init__(self, demands: Demands, state: _State, residuals: _Residuals) -> None:
        self.demands, self.state, self.residuals = demands, state, residuals
        counts = demands.sign != 0
        self.weights = counts / (state.room / state.multiplier + state.slack / state.spare)
        self.step_weights = state.step_multiplier / state.step_room
        self.factor = cho_factor(demands.curvature(self.weights, self.step_weights))

    def direction(self, centre: float, predicted: _State | None) -> _State:
        """The moves to products of `centre`, corrected by those of second order of a prediction."""
        state, residuals, demands = self.state, self.residuals, self.demands
        target = centre - state.room * state.multiplier
        spare_target = centre - state.slack * state.spare
        step_target = centre - state.step_room * state.step_multiplier
        if predicted is not None:
            target = target - predicted.room * predicted.multiplier
            spare_target = spare_target - predicted.slack * predicted.spare
            step_target = step_target - predicted.step_room * predicted.step_multiplier
        known = target / state.multiplier - spare_target / state.spare - residuals.primal
        known_steps = step_target / state.step_multiplier - residuals.step_primal
        right = demands.transposed(self.weights * known, self.step_weights * known_steps)
        point = cho_solve(self.factor, right - residuals.dual, check_finite=False)
        multiplier = self.weights * (known - demands.margins(point))
        steps = self.step_weights * (known_steps - demands.steps(point))
        return _State(
            point,
            room=(target - state.room * multiplier) / state.multiplier,
            slack=(spare_target + state.slack * multiplier) / state.spare,
            multiplier=multiplier,
            spare=-multiplier,
            step_room=(step_target - state.step_room * steps) / state.step_multiplier,
            step_multiplier=steps,
        )


def _start(demands: Demands) -> _State:
    """Equidistant cutpoints around scores of 0, with room everywhere."""
    num_cutpoints, d = demands.sign.shape[1], demands.features.shape[1]
    point = np.zeros(len(demands.penalty))
    places = np.linspace(-1.0, 1.0, num_cutpoints) if num_cutpoints > 1 else np.zeros(1)
    point[d:] = np.linalg.lstsq(demands.to_cutpoints, places, rcond=None)[0]
    margins, num_steps = demands.margins(point), len(demands.steps(point))
    slack = np.maximum(1 - margins, 1.0)
    room = np.maximum(margins + slack - 1, 1.0)
    half = demands.cost / 2
    return _State(point, room, slack, half, half, np.ones(num_steps), np.ones(num_steps))
