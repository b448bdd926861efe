"""Whether one method is better than another, or only luckier.

A difference between two methods is uncertain for two reasons: other seeds would have given other
networks, and other test rows other errors. The variance of the mean over seeds shows the first, and
of the second what differs from seed to seed; what all seeds of a method share in a row shows the
rest. Few seeds say little about the first, so what is due to them is held against a wider
distribution. Numbers in, sentences out.
"""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon.evaluation.metrics import ranked_probability_losses

SIGNIFICANT = 0.05
MIN_WILCOXON_PAIRS = 6  # with fewer, no outcome can reach 0.05


@dataclass(frozen=True)
class Summary:
    """A method over its runs: the mean and the standard deviation of a metric."""

    method: str
    metric: str
    runs: int
    mean: float
    sd: float


@dataclass(frozen=True)
class Difference:
    """The mean loss of `first` minus that of `second`, and what can be said about it.

    `se`, its standard error, has the parts `se_seeds` and `se_rows`; `effect` is the difference
    over the spread of the paired differences of rows. `p_adjusted` is corrected by Holm for all
    pairs that were compared. `verdict` is ``"different"``, ``"within noise"`` or ``"cannot tell"``.
    """

    first: str
    second: str
    mean: float
    se: float
    se_seeds: float
    se_rows: float
    low: float
    high: float
    p_value: float
    p_adjusted: float
    effect: float
    verdict: str
    sentence: str


def row_losses(
    metric: str, truth: ArrayLike, prediction: ArrayLike, probabilities: ArrayLike | None = None
) -> NDArray[np.float64]:
    """What each row adds to a metric that is a mean over rows, (n,).

    Parameters
    ----------
    metric : {"mae", "squared_error", "accuracy", "ranked_probability_score"}
        The accuracy as an error rate, so that less is better for all of them.
    truth, prediction : array-like, shape (n,)
    probabilities : array-like, shape (n, K), optional
    """
    t, p = np.asarray(truth, dtype=np.float64), np.asarray(prediction, dtype=np.float64)
    if metric == "ranked_probability_score":
        if probabilities is None:
            raise ValueError("ranked_probability_score needs probabilities")
        return ranked_probability_losses(truth, probabilities)[0]
    if metric == "mae":
        absolute: NDArray[np.float64] = np.abs(t - p)
        return absolute
    if metric == "squared_error":
        squared: NDArray[np.float64] = (t - p) ** 2
        return squared
    if metric == "accuracy":
        missed: NDArray[np.float64] = (t != p).astype(np.float64)
        return missed
    raise ValueError(
        f"metric must be 'mae', 'squared_error', 'accuracy' or 'ranked_probability_score'; got "
        f"{metric!r}"
    )


def summarise(values: Mapping[str, Sequence[float]], metric: str) -> list[Summary]:
    """Mean and standard deviation of each method's runs."""
    return [
        Summary(
            name,
            metric,
            len(runs),
            float(np.mean(runs)),
            float(np.std(runs, ddof=1)) if len(runs) > 1 else float("nan"),
        )
        for name, runs in values.items()
    ]


def compare(
    losses: Mapping[str, ArrayLike],
    *,
    pairs: Sequence[tuple[str, str]] | None = None,
    without_seeds: Collection[str] = (),
) -> list[Difference]:
    """Compare methods on the same test rows.

    Parameters
    ----------
    losses : mapping from method to array of shape (seeds, n)
        The loss of every row under every seed; see :func:`row_losses`.
    pairs : sequence of pairs, optional
        Which to compare; all of them without it. Holm's correction is over these.
    without_seeds : collection of str
        Methods in which nothing is random, such as a constant: one row of losses is all there is.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> noise = generator.random((2, 5, 400))
    >>> better, worse = noise[0], noise[1] + 0.5
    >>> compare({"a": better, "b": worse})[0].verdict
    'different'
    """
    tables = {
        name: np.atleast_2d(np.asarray(values, dtype=np.float64)) for name, values in losses.items()
    }
    sizes = {table.shape[1] for table in tables.values()}
    if len(sizes) != 1:
        raise ValueError(f"methods must be compared on the same rows; got {sorted(sizes)} of them")
    for name, table in tables.items():
        if not np.isfinite(table).all():
            raise ValueError(f"the losses of {name!r} must be finite")
    if pairs is None:
        pairs = list(itertools.combinations(tables, 2))
    seeds = {
        name: _Seeds(0.0, 0.0, 0) if name in without_seeds else _Seeds.of(table)
        for name, table in tables.items()
    }
    return _holm([_difference(a, b, tables, seeds) for a, b in pairs])


def compare_splits(
    losses: Mapping[str, ArrayLike],
    test_share: float,
    *,
    pairs: Sequence[tuple[str, str]] | None = None,
) -> list[Difference]:
    """Compare methods over several random divisions of one table.

    Parameters
    ----------
    losses : mapping from method to array of shape (splits,)
        The mean loss on each division's test rows.
    test_share : float
        Of the rows in each division.
    pairs : sequence of pairs, optional
        As in :func:`compare`.

    Examples
    --------
    >>> found = compare_splits({"a": [0.50, 0.52, 0.51], "b": [0.61, 0.64, 0.62]}, 0.25)
    >>> found[0].sentence
    'a is better than b by 0.11 (standard error 0.0047, p = 0.0017)'
    """
    from scipy import stats

    tables = {name: np.asarray(values, dtype=np.float64) for name, values in losses.items()}
    differences = []
    for first, second in pairs if pairs is not None else itertools.combinations(tables, 2):
        d = tables[first] - tables[second]
        _, p_value = corrected_resampled_t(d, test_share)
        mean = float(d.mean())
        se = float(np.sqrt(d.var(ddof=1) * (1 / len(d) + test_share / (1 - test_share))))
        reach = float(stats.t.ppf(1 - SIGNIFICANT / 2, len(d) - 1)) * se
        spread = float(d.std(ddof=1))
        difference = Difference(
            first, second, mean, se, float("nan"), float("nan"), mean - reach, mean + reach,
            p_value, p_value, mean / spread if spread > 0 else 0.0, "", "",
        )  # fmt: skip
        differences.append(difference)
    return _holm(differences)


def corrected_resampled_t(differences: ArrayLike, test_share: float) -> tuple[float, float]:
    """The t statistic and p-value of differences over resampled splits of one data set.

    Splits share rows, so their results are not independent; Nadeau and Bengio widen the variance
    by the ratio of test to training rows.

    Parameters
    ----------
    differences : array-like, shape (splits,)
    test_share : float
        Of the rows in each split.

    Examples
    --------
    >>> t, p = corrected_resampled_t([0.1, 0.12, 0.08, 0.11, 0.09], test_share=0.2)
    >>> round(t, 2), round(p, 4)
    (9.43, 0.0007)
    """
    d = np.asarray(differences, dtype=np.float64)
    if d.ndim != 1 or len(d) < 2:
        raise ValueError(f"needs the differences of at least 2 splits; got the shape {d.shape}")
    if not 0 < test_share < 1:
        raise ValueError(f"test_share must lie between 0 and 1; got {test_share}")
    spread = d.var(ddof=1) * (1 / len(d) + test_share / (1 - test_share))
    if spread == 0:
        return (0.0, 1.0) if d.mean() == 0 else (float(np.sign(d.mean())) * float("inf"), 0.0)
    t = float(d.mean() / np.sqrt(spread))
    return t, _two_sided_t(t, len(d) - 1)


def wilcoxon(differences: ArrayLike) -> float | None:
    """The p-value of Wilcoxon's signed-rank test, or None below six pairs, where it says nothing.

    Examples
    --------
    >>> wilcoxon([0.1, 0.2, 0.3, 0.1, 0.2]) is None
    True
    """
    from scipy import stats

    d = np.asarray(differences, dtype=np.float64)
    if len(d) < MIN_WILCOXON_PAIRS:
        return None
    return float(stats.wilcoxon(d).pvalue) if d.any() else 1.0


# ---- how it is done ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Seeds:
    """What the seeds of a method do to its mean loss.

    `variance` is that of the mean over seeds; `of_rows` the part of it that comes from what a seed
    does to single rows, and which the rows show as well; `freedom` the seeds less one.
    """

    variance: float
    of_rows: float
    freedom: int

    @classmethod
    def of(cls, table: NDArray[np.float64]) -> "_Seeds":
        """From losses (seeds, n)."""
        count, n = table.shape
        if count < 2:
            return cls(float("nan"), float("nan"), 0)
        by_seed = table.mean(axis=1)
        residual = table - table.mean(axis=0) - by_seed[:, None] + by_seed.mean()
        of_rows = (residual**2).sum() / ((count - 1) * max(1, n - 1)) / (count * n)
        return cls(float(by_seed.var(ddof=1) / count), float(of_rows), count - 1)


def _difference(
    first: str,
    second: str,
    tables: Mapping[str, NDArray[np.float64]],
    seeds: Mapping[str, _Seeds],
) -> Difference:
    paired = tables[first].mean(axis=0) - tables[second].mean(axis=0)
    n = len(paired)
    mean = float(paired.mean())
    spread = float(paired.std(ddof=1)) if n > 1 else 0.0
    effect = mean / spread if spread > 0 else 0.0
    a, b = seeds[first], seeds[second]
    by_seeds = a.variance + b.variance
    # Taken away from the rows, of which there are many, and not from the seeds: a variance of two
    # seeds less something is often below 0, and cut there it makes a verdict too sure.
    by_rows = max(0.0, spread**2 / n - a.of_rows - b.of_rows)
    se = float(np.sqrt(by_seeds + by_rows))
    # What two methods have in common is estimated by the seeds of both, the rest by those of one.
    common = min(a.variance, b.variance)
    larger = a if a.variance >= b.variance else b
    parts = [
        (2 * common, a.freedom + b.freedom),
        (by_seeds - 2 * common, larger.freedom),
        (by_rows, n - 1),
    ]
    if np.isnan(se) or n < 2:
        verdict, p_value, low, high = "cannot tell", float("nan"), float("nan"), float("nan")
    elif se == 0:
        same = mean == 0
        verdict, p_value = ("within noise", 1.0) if same else ("different", 0.0)
        low = high = mean
    else:
        p_value = _two_sided(abs(mean) / se, parts)
        reach = _critical(SIGNIFICANT, parts) * se
        low, high = mean - reach, mean + reach
        verdict = "different" if p_value < SIGNIFICANT else "within noise"
    return Difference(
        first, second, mean, se, float(np.sqrt(by_seeds)), float(np.sqrt(by_rows)), low, high,
        p_value, p_value, effect, verdict, "",
    )  # fmt: skip


def _critical(level: float, parts: Sequence[tuple[float, int]]) -> float:
    """The two-sided critical value of a mean whose variance has parts with degrees of freedom.

    Cochran and Cox: the mean of the critical values of t for each part, weighted by the parts.
    Unlike an effective number of degrees of freedom, it does not become too small when a variance
    that was estimated from few seeds happens to come out small.
    """
    from scipy.special import stdtrit  # the inverse of the distribution function of t

    total = sum(variance for variance, _ in parts)
    return sum(
        variance / total * -float(stdtrit(freedom, level / 2))
        for variance, freedom in parts
        if variance > 0
    )


def _two_sided(t: float, parts: Sequence[tuple[float, int]]) -> float:
    """The level whose critical value is `t`."""
    if not t > 0:
        return 1.0
    low, high = -300.0, 0.0  # of its logarithm to the base 10
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _critical(10**middle, parts) > t else (low, middle)
    return float(10**high)


def _holm(differences: list[Difference]) -> list[Difference]:
    """Correct the p-values for the number of comparisons, and say what follows."""
    known = [i for i, difference in enumerate(differences) if not np.isnan(difference.p_value)]
    highest = 0.0
    result = list(differences)
    for place, i in enumerate(sorted(known, key=lambda i: differences[i].p_value)):
        highest = max(highest, min(1.0, (len(known) - place) * differences[i].p_value))
        verdict = "different" if highest < SIGNIFICANT else "within noise"
        result[i] = replace(differences[i], p_adjusted=highest, verdict=verdict)
    return [replace(difference, sentence=_sentence(difference)) for difference in result]


def _sentence(difference: Difference) -> str:
    first, second, mean = difference.first, difference.second, difference.mean
    if difference.verdict == "cannot tell":
        return (
            f"{first} and {second} differ by {abs(mean):.4g}, but one seed cannot tell "
            f"how much of that is luck: run several"
        )
    size = f"{abs(mean):.2g}"
    chance = "p < 0.0001" if difference.p_adjusted < 1e-4 else f"p = {difference.p_adjusted:.2g}"
    doubt = f"(standard error {difference.se:.2g}, {chance})"
    if difference.verdict == "within noise":
        return f"the difference between {first} and {second}, {size}, is within noise {doubt}"
    better, worse = (first, second) if mean < 0 else (second, first)
    return f"{better} is better than {worse} by {size} {doubt}"


def _two_sided_t(t: float, freedom: float) -> float:
    from scipy import stats

    return float(2 * stats.t.sf(abs(t), freedom))


def as_rows(differences: Sequence[Difference]) -> list[dict[str, Any]]:
    """For JSON and tables."""
    return [dict(vars(difference)) for difference in differences]
