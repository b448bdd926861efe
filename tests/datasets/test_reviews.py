"""What generated reviews say is what they score."""

import numpy as np

from echelon.data import make_reviews


def test_a_negation_turns_a_clause_round() -> None:
    data = make_reviews(2000, seed=0)
    single = [(t, s) for t, s in zip(data.texts, data.scores, strict=True) if t.count("were") == 1]
    for word, sign in (("superb", 1), ("awful", -1)):
        plain = [s for t, s in single if f" {word}" in t and " not " not in t]
        turned = [s for t, s in single if f" {word}" in t and " not " in t]
        assert len(plain) > 3 < len(turned)
        assert min(np.multiply(sign, plain)) > 0 > max(np.multiply(sign, turned))
