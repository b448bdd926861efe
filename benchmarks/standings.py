"""The arithmetic of the accuracy benchmark: errors of means, ratios, ranks, and the tables of them.

Divisions of one table share rows, so the spread between them says too little about another draw of
the table. Nadeau and Bengio's factor mends that: with J divisions the variance of a mean is that
between divisions times 1/J + (test rows / other rows), and not times 1/J.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

REFERENCE = "LightGBM classes"
METRICS = {
    "MAE": "mae",
    "RMSE": "rmse",
    "QWK": "quadratic_weighted_kappa",
    "RPS": "ranked_probability_score",
}
RATIOS = ("MAE", "RPS")
BEHIND = 2  # standard errors that are more than noise


class Scores(NamedTuple):
    """One contestant on one set: a value per division of every metric, and of the seconds."""

    values: dict[str, list[float]]
    seconds: list[float]
    overlap: float


class Ratio(NamedTuple):
    """A mean error over that of the reference, and its standard error."""

    value: float
    error: float

    @property
    def is_behind(self) -> bool:
        """Whether it is worse than the reference by more than noise."""
        return self.value - 1 > BEHIND * self.error

    def __str__(self) -> str:
        shown = f"{self.value:.3f} ({self.error:.3f})"
        return f"{shown} behind" if self.is_behind else shown


Results = Mapping[str, Mapping[str, Scores]]  # by set and by contestant


def standard_error(values: Sequence[float], overlap: float) -> float:
    """The standard error of the mean over divisions, `overlap` being test rows over the others.

    Examples
    --------
    >>> five = [1, 2, 3, 4, 5]
    >>> round(standard_error(five, 1 / 3) / standard_error(five, 0), 2)
    1.63
    """
    if len(values) < 2:
        return float("nan")
    return float(np.std(values, ddof=1) * (1 / len(values) + overlap) ** 0.5)


def ratio(ours: Sequence[float], theirs: Sequence[float], overlap: float) -> Ratio:
    """The ratio of two means over the same divisions.

    Its standard error is that of what each division adds to it, ours less the ratio times theirs,
    so that what makes a division hard for both does not count.

    Examples
    --------
    >>> ratio([0.5, 1.0, 1.5], [1.0, 2.0, 3.0], 1 / 3)
    Ratio(value=0.5, error=0.0)
    """
    value = float(np.mean(ours) / np.mean(theirs))
    excess = (np.asarray(ours) - value * np.asarray(theirs)) / np.mean(theirs)
    return Ratio(value, standard_error(excess.tolist(), overlap))


def geometric_mean(values: Iterable[float]) -> float:
    """The mean of ratios: halved on one set and doubled on another is 1."""
    return float(np.exp(np.mean(np.log(list(values)))))


def mean_ranks(results: Results, metric: str) -> dict[str, float]:
    """The place of everyone, 1 the best, averaged over the sets; equal ones share their places."""
    everyone = in_all(results)
    places = [
        rankdata([np.mean(found[who].values[metric]) for who in everyone])
        for found in results.values()
    ]
    return dict(zip(everyone, np.mean(places, axis=0).tolist(), strict=True)) if places else {}


def in_all(results: Results) -> list[str]:
    """The contestants that have scores on every set."""
    first = next(iter(results.values()), {})
    return [who for who in first if all(who in found for found in results.values())]


# ---- tables --------------------------------------------------------------------------------------


def set_table(name: str, found: Mapping[str, Scores]) -> str:
    """Every metric of everyone on one set, and the ratios to the reference."""
    titles = [*METRICS, *(f"{title} / reference" for title in RATIOS), "seconds"]
    lines = table_head(name, titles)
    reference = found.get(REFERENCE)
    for who, scores in found.items():
        cells = [
            f"{np.mean(values):.3f} ({standard_error(values, scores.overlap):.3f})"
            for values in (scores.values[title] for title in METRICS)
        ]
        for title in RATIOS:
            if reference is None or who == REFERENCE:
                cells.append("1" if who == REFERENCE else "")
            else:
                cells.append(
                    str(ratio(scores.values[title], reference.values[title], scores.overlap))
                )
        cells.append(f"{np.mean(scores.seconds):.1f}")
        lines.append(f"| {who} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def table_head(title: str, columns: Sequence[str]) -> list[str]:
    rule = "| --- |" + " ---: |" * len(columns)
    return [f"### {title}", "", "| | " + " | ".join(columns) + " |", rule]


def summary(title: str, results: Results) -> str:
    """Mean ranks and mean ratios over sets, and where someone is behind by more than noise."""
    everyone = in_all(results)
    ranks = {metric: mean_ranks(results, metric) for metric in RATIOS}
    head = [
        *(f"mean rank, {metric}" for metric in RATIOS),
        *(f"{metric} / reference" for metric in RATIOS),
        *(f"behind in {metric}" for metric in RATIOS),
        "seconds",
    ]
    lines = table_head(title, head)
    for who in sorted(everyone, key=lambda one: ranks["RPS"][one]):
        cells = [f"{ranks[metric][who]:.2f}" for metric in RATIOS]
        found = {metric: set_ratios(results, who, metric) for metric in RATIOS}
        cells += [
            f"{geometric_mean(one.value for one in ratios.values()):.3f}" if ratios else ""
            for ratios in found.values()
        ]
        cells += [places(ratios) for ratios in found.values()]
        taken = [np.mean(by_name[who].seconds) for by_name in results.values()]
        cells.append(f"{min(taken):.1f} to {max(taken):.1f}")
        lines.append(f"| {who} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def places(ratios: Mapping[str, Ratio]) -> str:
    """The sets on which someone is behind: by name, or how many where they are more than two."""
    names = [name for name, one in ratios.items() if one.is_behind]
    return ", ".join(names) if len(names) <= 2 else f"{len(names)} of {len(ratios)} sets"


def set_ratios(
    results: Results, who: str, metric: str, beside: str = REFERENCE
) -> dict[str, Ratio]:
    """The ratio to the reference, or to another, on every set; none where that one lacks a set."""
    if beside not in in_all(results):
        return {}
    return {
        name: ratio(found[who].values[metric], found[beside].values[metric], found[who].overlap)
        for name, found in results.items()
    }


def beside(results: Results, who: str, other: str) -> str:
    """One contestant over another, in a sentence; empty where one of them lacks a set."""
    if not {who, other} <= set(in_all(results)):
        return ""
    shown = []
    for metric in RATIOS:
        ratios = set_ratios(results, who, metric, other)
        worse = ", ".join(name for name, one in ratios.items() if one.is_behind) or "none"
        value = geometric_mean(one.value for one in ratios.values())
        shown.append(f"{metric} {value:.3f}, behind on {worse}")
    return f"{who} over {other}: {'; '.join(shown)}."
