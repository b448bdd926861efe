"""The words of the page that not every reader has met, each with its meaning."""

import html
import re
from collections.abc import Mapping, Sequence

from echelon.evaluation.metrics import shown_metrics
from echelon.methods import METHODS
from echelon.models.table import MODELS

TERMS: Mapping[str, str] = {
    "class": "One of the labels that are predicted. They have an order, and a prediction that is "
    "two classes off is worse than one that is one class off.",
    "test rows": "Rows that no model has seen while it was fitted, so that errors on them are "
    "those to expect of new rows.",
    "baseline": "A simple predictor that every good model must beat.",
    "floor": "What nobody can beat: the predictor that knows how the data were made.",
    "constant": "A predictor that says the same of every row: the shares of the classes, and the "
    "middle class.",
    "cumulative link": "A simple linear model of ordered classes (proportional odds), fitted "
    "exactly.",
    "bag of words": "A simple model of texts: a logistic regression on the words and pairs of "
    "words.",
    "best possible": "The predictor that knows how the data were made. Nothing can be better over "
    "many rows.",
    "run": "One fit of a method with one seed. Other seeds give slightly other models.",
    "standard error": "By how much a figure would typically differ with other seeds and other test "
    "rows.",
    "p": "How often chance alone would show a difference as large as this. A small p speaks "
    "against chance; it is corrected for the number of comparisons.",
    "within noise": "The difference is no larger than chance alone may bring: take neither for "
    "better.",
    "confusion matrix": "For each true class, the shares of what was predicted for it. The "
    "diagonal is right; what is far from it is badly wrong.",
    "reliability": "Whether what is said to have a probability of 30 % happens in 30 % of the "
    "cases.",
    "coverage": "The share of prediction intervals that contain the truth. Wider intervals contain "
    "it more often.",
    "rank inconsistency": "P(y > k), the probability of a class above k, must fall as k grows. The "
    "curves of some methods do not always do so before they are repaired.",
    "epoch": "One pass of the training over all training rows. Trees are grown in rounds instead.",
    "validation": "Rows that were kept aside during training to choose when to stop.",
    "overfitting": "Learning the training rows by heart instead of what new rows have in common "
    "with them.",
    "underfitting": "Learning less than the rows have to tell.",
    "surprise": "How unlikely the true class seemed to the model.",
}  # fmt: skip


def meanings(names: Sequence[str]) -> dict[str, str]:
    """What each term of the page means: metrics, methods and models by their names, and the rest.

    Parameters
    ----------
    names : sequence of str
        The methods and models that stand on the page; what is not known of them is left out.

    Examples
    --------
    >>> sorted(set(meanings(["boosting", "mine"])) - set(TERMS))[:3]
    ['MAE', 'QWK', 'RMSE']
    """
    words = {
        row.title: f"{row.meaning} {row.direction.capitalize()}."
        for row in shown_metrics(wide=True)
    }
    for name in names:
        word = re.split("[:/]", name)[0]
        row = METHODS.get(word) or MODELS.get(word)
        if row is not None:
            words[word] = f"{row.summary[:1].upper()}{row.summary[1:].rstrip('.')}."
    known = set(names)
    baselines = {"constant", "cumulative link", "bag of words", "best possible"}
    words |= {
        term: meaning
        for term, meaning in TERMS.items()
        if term not in baselines or term in known or term == "constant"
    }
    return dict(sorted(words.items(), key=lambda item: item[0].lower()))


class Glossary:
    """Links from the words of a page to their meanings at its end."""

    def __init__(self, names: Sequence[str]) -> None:
        self.meanings = meanings(names)
        self.used: set[str] = set()

    def link(self, term: str, text: str | None = None) -> str:
        """A word as HTML that leads to its meaning; the word alone where it has none."""
        shown = html.escape(term if text is None else text)
        key = term if term in self.meanings else re.split("[:/]", term)[0]
        if key not in self.meanings:
            return shown
        self.used.add(key)
        return f'<a class="term" href="#{_anchor(key)}">{shown}</a>'

    def list(self) -> str:
        """The terms that were linked, with their meanings: the inside of a list of definitions."""
        return "".join(
            f'<div id="{_anchor(term)}"><dt>{html.escape(term)}</dt>'
            f"<dd>{html.escape(meaning)}</dd></div>"
            for term, meaning in self.meanings.items()
            if term in self.used
        )


def _anchor(term: str) -> str:
    return "term-" + re.sub("[^a-z0-9]+", "-", term.lower())
