"""What may be searched: numbers between two ends, or values to choose from, by the name of each.

Models and backbones say here what is worth searching of them; nothing here searches, and nothing
heavy is imported.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_KEYS = ("low", "high", "log", "whole")
_DIGITS = 4  # of a number that is tried: more say nothing, and are hard to read


@dataclass(frozen=True)
class Between:
    """Numbers from `low` to `high`, both among them.

    Parameters
    ----------
    low, high : float
    log : bool
        Whether equal ratios count alike, instead of equal differences.
    whole : bool
        Whether only whole numbers are meant.

    Examples
    --------
    >>> Between(0.001, 0.1, log=True).in_words
    '0.001 to 0.1, by ratios'
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        for end in (self.low, self.high):
            if isinstance(end, bool) or not isinstance(end, (int, float)) or not math.isfinite(end):
                raise ValueError(f"the ends must be finite numbers; got {end!r}")
        if not self.low < self.high:
            raise ValueError(f"low must be below high; got {self.low!r} and {self.high!r}")
        if self.log and self.low <= 0:
            raise ValueError(f"low must be above 0 where log is true; got {self.low!r}")
        if self.whole and (self.low != int(self.low) or self.high != int(self.high)):
            raise ValueError(
                f"the ends must be whole where whole is true; got {self.low!r} and {self.high!r}"
            )

    @property
    def in_words(self) -> str:
        """What it holds, for a table that people read."""
        return f"{self.low:g} to {self.high:g}{', whole' * self.whole}{', by ratios' * self.log}"

    def readable(self, value: Any) -> Any:
        """A number with no more digits than say something, still between the ends."""
        if self.whole:
            return int(value)
        return min(max(float(f"{value:.{_DIGITS}g}"), self.low), self.high)

    def document(self) -> dict[str, Any]:
        """As it is written down."""
        return {"low": self.low, "high": self.high, "log": self.log, "whole": self.whole}


@dataclass(frozen=True)
class OneOf:
    """Some values, of which one is taken.

    Examples
    --------
    >>> OneOf(("logit", "probit")).in_words
    'logit, probit'
    """

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("at least one value is needed; got none")
        written = [json.dumps(value, sort_keys=True) for value in self.values]
        if len(set(written)) < len(written):
            raise ValueError(f"the values must differ; got {list(self.values)!r}")

    @property
    def in_words(self) -> str:
        """What it holds, for a table that people read."""
        return ", ".join(map(str, self.values))

    def readable(self, value: Any) -> Any:
        """The value itself."""
        return value

    def document(self) -> list[Any]:
        """As it is written down."""
        return [*self.values]


Dimension = Between | OneOf
Space = Mapping[str, Dimension]


def read_space(given: Mapping[str, Any]) -> dict[str, Dimension]:
    """A space as people write it: a list of values, or two ends, for each name.

    Parameters
    ----------
    given : mapping
        From a name to a list of values, to a mapping with `low`, `high` and, if need be, `log` and
        `whole`, or to a :class:`Between` or :class:`OneOf`. A name with a dot goes into a
        parameter that is a mapping: ``settings.learning_rate``.

    Examples
    --------
    >>> read_space({"leaves": {"low": 4, "high": 32, "whole": True}, "learning_rate": [0.05, 0.1]})
    {'leaves': Between(low=4, high=32, log=False, whole=True),
     'learning_rate': OneOf(values=(0.05, 0.1))}
    """
    if not isinstance(given, Mapping) or not given:
        raise ValueError(
            f"a space must name something to search, such as {{'leaves': [7, 15, 31]}}; got "
            f"{given!r:.80}"
        )
    space: dict[str, Dimension] = {}
    for name, value in given.items():
        if isinstance(value, Mapping) and value and not set(value) & set(_KEYS):
            # A dot without quotes, and a table of its own, make TOML put one mapping into another.
            inner = read_space(value)
            space |= {f"{name}.{key}": dimension for key, dimension in inner.items()}
        else:
            space[str(name)] = _read_dimension(str(name), value)
    return space


def _read_dimension(name: str, given: Any) -> Dimension:
    if isinstance(given, (Between, OneOf)):
        return given
    try:
        if isinstance(given, (list, tuple)):
            return OneOf(tuple(given))
        if isinstance(given, Mapping) and {"low", "high"} <= set(given) <= set(_KEYS):
            if any(not isinstance(given.get(key, False), bool) for key in ("log", "whole")):
                raise ValueError("log and whole must be true or false")
            return Between(**given)
    except (ValueError, TypeError) as error:
        raise ValueError(f"the space of {name} cannot be read: {error}") from None
    raise ValueError(
        f"the space of {name} must be a list of values, or have low and high and, if need be, log "
        f"and whole, as in {{'low': 0.01, 'high': 0.2, 'log': True}}; got {given!r:.80}"
    )


def space_document(space: Space) -> dict[str, Any]:
    """A space as JSON has it, which :func:`read_space` reads back."""
    return {name: dimension.document() for name, dimension in space.items()}
