"""Groups of rows out of the names of their files, such as the patient on a radiograph."""

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray


def group_expression(pattern: str) -> "re.Pattern[str]":
    """A pattern as the command line says it, or an error that says what is wrong with it."""
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ValueError(
            f"--group-pattern must be a regular expression; {pattern!r} is none: {error}"
        ) from None
    if expression.groups > 1:
        raise ValueError(
            f"--group-pattern must have one part in brackets, the group; {pattern!r} has "
            f"{expression.groups}: write (?:..) for the others"
        )
    return expression


def groups_of_names(names: Iterable[Any], pattern: str) -> NDArray[Any]:
    r"""The group that a pattern takes out of the name of each file, (n,).

    Parameters
    ----------
    names : iterable of str or Path
        Only what follows the last folder is looked at.
    pattern : str
        A regular expression, looked for anywhere in the name. Its part in brackets is the group,
        or all that it matches where it has none.

    Examples
    --------
    >>> groups_of_names(["a/9003175L.jpg", "b/9003175R.jpg"], r"^(\d+)[LR]").tolist()
    ['9003175', '9003175']
    """
    expression = group_expression(pattern)
    groups = []
    for name in names:
        match = expression.search(PurePath(str(name)).name)
        if match is None or match[expression.groups] is None:
            raise ValueError(
                f"--group-pattern must match the name of every file; {pattern!r} does not match "
                f"{PurePath(str(name)).name!r}"
            )
        groups.append(match[expression.groups])
    return np.array(groups, dtype=object)
