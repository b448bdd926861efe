"""Probabilities that somebody acts on, as they are written: ``P(y<=Disagree)``."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

_RISK = re.compile(r"\s*P\s*\(\s*y\s*(<=|>=|==|=|<|>)\s*(.+?)\s*\)\s*", re.IGNORECASE)


class Risk(NamedTuple):
    """A probability of some classes: its name, and the places of the classes."""

    name: str
    places: tuple[int, ...]

    def of(self, probabilities: Any) -> Any:
        """The probability of each row, (n,), of probabilities (n, K)."""
        return probabilities[:, list(self.places)].sum(1)


def read_risk(text: str, classes: Sequence[Any]) -> Risk:
    """A risk as it was written, for the classes of a model.

    Examples
    --------
    >>> read_risk("P(y<=mid)", ["low", "mid", "high"])
    Risk(name='P(y<=mid)', places=(0, 1))
    >>> read_risk("p(y > 1)", [1, 2, 3]).places
    (1, 2)
    """
    from echelon.data.matching import fold

    match = _RISK.fullmatch(text)
    if match is None:
        raise ValueError(
            f'--risk must be written as "P(y<=CLASS)", with <, <=, =, >= or > and quotes around '
            f"it; got {text!r}"
        )
    sign, name = match.groups()
    wanted = fold(name.strip("\"'"))
    places = [i for i, label in enumerate(classes) if fold(str(label)) == wanted]
    if len(places) != 1:
        raise ValueError(
            f"--risk names the class {name!r}, and the classes of the model are "
            f"{', '.join(map(str, classes))}"
        )
    (place,) = places
    sign = "=" if sign == "==" else sign
    taken = {
        "<": range(place), "<=": range(place + 1), "=": range(place, place + 1),
        ">=": range(place, len(classes)), ">": range(place + 1, len(classes)),
    }[sign]  # fmt: skip
    return Risk(f"P(y{sign}{classes[place]})", tuple(taken))
