"""Labels that differ from a class only by case or spaces, and the class that is meant."""

from collections.abc import Sequence
from typing import Any

import pandas as pd


def fold(text: str) -> str:
    """A text without what people write in many ways: case, outer spaces, repeated inner ones.

    Examples
    --------
    >>> fold("  Strongly  AGREE ")
    'strongly agree'
    """
    return " ".join(text.casefold().split())


def meant_classes(labels: Sequence[Any], classes: Sequence[Any]) -> dict[Any, Any]:
    """The class that each label means that is none itself, where case and spaces are all.

    Nothing is meant where two of the classes differ by no more than that.

    Examples
    --------
    >>> meant_classes(["low", "High ", "odd"], ["Low", "High"])
    {'low': 'Low', 'High ': 'High'}
    >>> meant_classes(["LOW"], ["low", "Low"])
    {}
    """
    folded = {fold(label): label for label in classes if isinstance(label, str)}
    if len(folded) != len(classes):
        return {}
    known = set(classes)
    return {
        label: folded[fold(label)]
        for label in labels
        if isinstance(label, str) and label not in known and fold(label) in folded
    }


def matched(column: "pd.Series[Any]", classes: Sequence[Any]) -> "pd.Series[Any]":
    """The labels of a column, with the class that is meant in the place of what differs so."""
    meant = meant_classes([label for label in column.unique() if isinstance(label, str)], classes)
    if not meant:
        return column
    replaced: pd.Series[Any] = column.map(lambda cell: meant.get(cell, cell))
    return replaced


def variants(labels: Sequence[Any]) -> dict[str, list[str]]:
    """Labels that differ only by case or spaces, by what they have in common.

    Examples
    --------
    >>> variants(["Agree", "agree ", "No"])
    {'agree': ['Agree', 'agree ']}
    """
    groups: dict[str, list[str]] = {}
    for label in labels:
        if isinstance(label, str) and label.strip():
            groups.setdefault(fold(label), []).append(label)
    return {folded: members for folded, members in groups.items() if len(members) > 1}
