"""Whether one method is better than another, or only luckier.

A difference between two methods is uncertain for two reasons: other seeds would have given other
networks, and other test rows other errors. Both are estimated by resampling, seeds and rows apart,
and added up. Numbers in, sentences out.
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
_RESAMPLES = 1000
_BLOCK = 4_000_000  # counts that are drawn at once


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

    `se` has the parts `se_seeds` and `se_rows`; `effect` is the difference over the spread of the
    paired differences of rows. `p_adjusted` is corrected by Holm for all pairs that were compared.
    `verdict` is ``"different"``, ``"within noise"`` or ``"cannot tell"``.
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
    resamples: int = _RESAMPLES,
    seed: int = 0,
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
    resamples : int
    seed : int
        Of the resampling.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> noise = generator.random((2, 5, 400))
    >>> better, worse = noise[0], noise[1] + 0.5
    >>> compare({"a": better, "b": worse})[0].verdict
    'different'
    """
    tables = {
        name: np.atleast_2d(np.asarray(one, dtype=np.float64)) for name, one in losses.items()
    }
    sizes = {table.shape[1] for table in tables.values()}
    if len(sizes) != 1:
        raise ValueError(f"methods must be compared on the same rows; got {sorted(sizes)} of them")
    for name, table in tables.items():
        if not np.isfinite(table).all():
            raise ValueError(f"the losses of {name!r} must be finite")
    if pairs is None:
        pairs = list(itertools.combinations(tables, 2))
    generator = np.random.default_rng(seed)
    resampled = _resample_rows(tables, resamples, generator)
    by_seeds = {
        name: 0.0 if name in without_seeds else _resample_seeds(table, resamples, generator)
        for name, table in tables.items()
    }
    return _holm([_difference(a, b, tables, resampled, by_seeds) for a, b in pairs])


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
    'a is better than b by 0.11 ± 0.0047 (p = 0.0017)'
    """
    from scipy import stats

    tables = {name: np.asarray(one, dtype=np.float64) for name, one in losses.items()}
    found = []
    for first, second in pairs if pairs is not None else itertools.combinations(tables, 2):
        d = tables[first] - tables[second]
        _, p_value = corrected_resampled_t(d, test_share)
        mean = float(d.mean())
        se = float(np.sqrt(d.var(ddof=1) * (1 / len(d) + test_share / (1 - test_share))))
        reach = float(stats.t.ppf(1 - SIGNIFICANT / 2, len(d) - 1)) * se
        spread = float(d.std(ddof=1))
        one = Difference(
            first, second, mean, se, float("nan"), float("nan"), mean - reach, mean + reach,
            p_value, p_value, mean / spread if spread > 0 else 0.0, "", "",
        )  # fmt: skip
        found.append(one)
    return _holm(found)


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


def _resample_rows(
    tables: Mapping[str, NDArray[np.float64]], resamples: int, generator: np.random.Generator
) -> dict[str, NDArray[np.float64]]:
    """The mean over seeds on rows drawn with replacement, (resamples,), the same rows for all."""
    means = np.stack([table.mean(axis=0) for table in tables.values()], axis=1)  # (n, methods)
    n = len(means)
    parts = []
    step = max(1, _BLOCK // n)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        drawn = generator.integers(n, size=(size, n))
        offsets = np.arange(size)[:, None] * n
        counts = np.bincount((drawn + offsets).reshape(-1), minlength=size * n).reshape(size, n)
        parts.append(counts @ means / n)
    whole = np.concatenate(parts)
    return {name: whole[:, i] for i, name in enumerate(tables)}


def _resample_seeds(
    table: NDArray[np.float64], resamples: int, generator: np.random.Generator
) -> float:
    """The variance of a mean over seeds, by drawing seeds with replacement."""
    by_seed = table.mean(axis=1)
    count = len(by_seed)
    if count < 2:
        return float("nan")
    drawn = by_seed[generator.integers(count, size=(resamples, count))].mean(axis=1)
    # Few seeds drawn with replacement vary too little, by just this factor.
    variance = drawn.var() * count / (count - 1)
    # What a seed does to single rows also moves its mean, but that is already in the rows' part.
    residual = table - table.mean(axis=0) - by_seed[:, None] + by_seed.mean()
    freedom = (count - 1) * max(1, table.shape[1] - 1)
    within_rows = (residual**2).sum() / freedom / (count * table.shape[1])
    return float(max(0.0, variance - within_rows))


def _difference(
    first: str,
    second: str,
    tables: Mapping[str, NDArray[np.float64]],
    resampled: Mapping[str, NDArray[np.float64]],
    variances: Mapping[str, float],
) -> Difference:
    from scipy import stats

    a, b = tables[first], tables[second]
    n = a.shape[1]
    paired = a.mean(axis=0) - b.mean(axis=0)
    mean = float(paired.mean())
    by_rows = float((resampled[first] - resampled[second]).var())
    by_seeds = [variances[first], variances[second]]
    total = by_rows + sum(by_seeds)
    se = float(np.sqrt(total))
    spread = float(paired.std(ddof=1)) if n > 1 else 0.0
    effect = mean / spread if spread > 0 else 0.0
    if np.isnan(se) or n < 2:
        verdict, p_value, low, high = "cannot tell", float("nan"), float("nan"), float("nan")
    elif se == 0:
        same = mean == 0
        verdict, p_value = ("within noise", 1.0) if same else ("different", 0.0)
        low = high = mean
    else:
        # Welch and Satterthwaite: few seeds make the estimate of their variance uncertain.
        squares = [(by_rows, n - 1), (by_seeds[0], len(a) - 1), (by_seeds[1], len(b) - 1)]
        freedom = total**2 / sum(one**2 / df for one, df in squares if df > 0)
        p_value = _two_sided_t(mean / se, freedom)
        reach = float(stats.t.ppf(1 - SIGNIFICANT / 2, freedom)) * se
        low, high = mean - reach, mean + reach
        verdict = "different" if p_value < SIGNIFICANT else "within noise"
    return Difference(
        first, second, mean, se, float(np.sqrt(sum(by_seeds))), float(np.sqrt(by_rows)), low, high,
        p_value, p_value, effect, verdict, "",
    )  # fmt: skip


def _holm(found: list[Difference]) -> list[Difference]:
    """Correct the p-values for the number of comparisons, and say what follows."""
    known = [i for i, one in enumerate(found) if not np.isnan(one.p_value)]
    highest = 0.0
    result = list(found)
    for place, i in enumerate(sorted(known, key=lambda i: found[i].p_value)):
        highest = max(highest, min(1.0, (len(known) - place) * found[i].p_value))
        verdict = "different" if highest < SIGNIFICANT else "within noise"
        result[i] = replace(found[i], p_adjusted=highest, verdict=verdict)
    return [replace(one, sentence=_sentence(one)) for one in result]


def _sentence(one: Difference) -> str:
    if one.verdict == "cannot tell":
        return (
            f"{one.first} and {one.second} differ by {abs(one.mean):.4g}, but one seed cannot tell "
            f"how much of that is luck: run several"
        )
    size = f"{abs(one.mean):.2g} ± {one.se:.2g}"
    chance = "p < 0.0001" if one.p_adjusted < 1e-4 else f"p = {one.p_adjusted:.2g}"
    if one.verdict == "within noise":
        return (
            f"the difference between {one.first} and {one.second}, {size}, is within noise "
            f"({chance})"
        )
    better, worse = (one.first, one.second) if one.mean < 0 else (one.second, one.first)
    return f"{better} is better than {worse} by {size} ({chance})"


def _two_sided_t(t: float, freedom: float) -> float:
    from scipy import stats

    return float(2 * stats.t.sf(abs(t), freedom))


def as_rows(differences: Sequence[Difference]) -> list[dict[str, Any]]:
    """For JSON and tables."""
    return [dict(vars(one)) for one in differences]
