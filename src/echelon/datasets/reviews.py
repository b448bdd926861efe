"""Reviews from a small grammar, with everything about them known.

A review has one to five clauses about parts of a course. Each clause says how good that part was:
an adjective with a value, an adverb that makes it stronger or weaker, and sometimes a negation that
turns it round, so that counting words is not enough. The mean of the clauses is the score, the
rank is the score with normal noise, cut at its population quantiles. As the text gives the score
away, the probabilities of the best possible predictor are known exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from echelon.datasets.latent import LatentRanks, draw_ranks, normal_cdf, require_latent

_PARTS = ("lectures", "videos", "exercises", "slides", "quizzes", "examples", "projects", "notes")
_ADJECTIVES = {
    "awful": -3.0, "useless": -3.0, "dull": -2.0, "confusing": -2.0, "bland": -1.0, "dated": -1.0,
    "fair": 1.0, "decent": 1.0, "clear": 2.0, "useful": 2.0, "superb": 3.0, "brilliant": 3.0,
}  # fmt: skip
_ADVERBS = {"": 1.0, "slightly": 0.5, "rather": 0.75, "very": 1.25, "extremely": 1.5}
_NEGATION = -0.5  # "not brilliant" is mildly bad
_NEGATED = 0.25  # share of the clauses
_OPENINGS = ("", "i took this last year.", "my second course here.", "honest opinion:")
_JOINTS = (", ", " and ", " but ", "; ")
_MOST_CLAUSES = 5


@dataclass(frozen=True)
class Reviews(LatentRanks):
    """Generated reviews, their ranks, and the truth behind them.

    Parameters
    ----------
    texts : list of str
        The text of each review.
    ranks : array of int64, shape (n,)
        The rank of each row, 0..K-1.
    scores : array of float64, shape (n,)
        What each text says, before the noise.
    boundaries : array of float64, shape (K-1,)
        Population quantiles at 1/K, 2/K, ..: the same for every n and seed.
    noise : float
        Standard deviation of the noise.

    Examples
    --------
    >>> reviews = make_reviews(4, num_classes=5)
    >>> len(reviews.texts), reviews.bayes_probabilities.shape
    (4, (4, 5))
    """

    texts: list[str]
    ranks: NDArray[np.int64]
    scores: NDArray[np.float64]
    boundaries: NDArray[np.float64]
    noise: float

    @property
    def signal(self) -> NDArray[np.float64]:
        """The score of each text, (n,)."""
        return self.scores


def make_reviews(n: int, num_classes: int = 5, noise: float = 0.5, seed: int = 0) -> Reviews:
    """Generate reviews with ranks.

    Parameters
    ----------
    n : int
        Number of reviews.
    num_classes : int
        K, at least 2.
    noise : float
        Standard deviation of the noise, greater than 0; scores lie between -4.5 and 4.5.
    seed : int
        Reviews of different seeds are of the same population: fit on one, test on another.

    Examples
    --------
    >>> reviews = make_reviews(3, seed=1)
    >>> reviews.bayes_probabilities.shape
    (3, 5)
    """
    require_latent(n, num_classes, noise)
    generator = np.random.default_rng(seed)
    texts, scores = zip(*(_one_review(generator) for _ in range(n)), strict=True)
    score = np.array(scores)
    boundaries = np.array(_population_quantiles(num_classes, float(noise)))
    ranks = draw_ranks(score, boundaries, noise, generator)
    return Reviews(list(texts), ranks, score, boundaries, float(noise))


def _one_review(generator: np.random.Generator) -> tuple[str, float]:
    count = int(generator.integers(1, _MOST_CLAUSES + 1))
    parts = generator.choice(len(_PARTS), count, replace=False)
    text, values = "", []
    for i, part in enumerate(parts):
        adjective = list(_ADJECTIVES)[generator.integers(len(_ADJECTIVES))]
        adverb = list(_ADVERBS)[generator.integers(len(_ADVERBS))]
        negated = generator.random() < _NEGATED
        words = ["the", _PARTS[part], "were", *(["not"] if negated else []), adverb, adjective]
        joint = _JOINTS[generator.integers(len(_JOINTS))] if i else ""
        text += joint + " ".join(word for word in words if word)
        values.append(_ADJECTIVES[adjective] * _ADVERBS[adverb] * (_NEGATION if negated else 1.0))
    opening = _OPENINGS[generator.integers(len(_OPENINGS))]
    return f"{opening} {text}.".strip(), float(np.mean(values))


@lru_cache(maxsize=16)
def _population_quantiles(num_classes: int, noise: float) -> tuple[float, ...]:
    """Where the noisy score of a random review is cut, by adding up every review there can be."""
    values, shares = _clause_distribution()
    scores, weights = [], []
    sums = {0.0: 1.0}
    for count in range(1, _MOST_CLAUSES + 1):
        added: dict[float, float] = {}
        for total, mass in sums.items():
            for value, share in zip(values, shares, strict=True):
                key = round(total + value, 6)
                added[key] = added.get(key, 0.0) + mass * share
        sums = added
        scores += [total / count for total in sums]
        weights += [mass / _MOST_CLAUSES for mass in sums.values()]
    points, share_of = np.array(scores), np.array(weights)

    def below(boundary: float) -> float:
        return float((normal_cdf((boundary - points) / noise) * share_of).sum())

    return tuple(_bisect(below, k / num_classes, noise) for k in range(1, num_classes))


def _clause_distribution() -> tuple[list[float], list[float]]:
    """Every value that a clause can have, and how likely it is."""
    shares: dict[float, float] = {}
    for value in _ADJECTIVES.values():
        for factor in _ADVERBS.values():
            for turn, share in ((1.0, 1 - _NEGATED), (_NEGATION, _NEGATED)):
                key = value * factor * turn
                even = share / (len(_ADJECTIVES) * len(_ADVERBS))
                shares[key] = shares.get(key, 0.0) + even
    return list(shares), list(shares.values())


def _bisect(below: Callable[[float], float], share: float, noise: float) -> float:
    reach = 4.5 + 8 * noise
    low, high = -reach, reach
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < share else (low, middle)
    return (low + high) / 2
