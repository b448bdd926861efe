"""Docstrings as they are written: a griffe extension that marks the types in them as words.

Read as Python, "array, shape (K,)" would become a pair and a call, and the first of the choices
``{"median", "mean"}`` would be shown as a default that it is not.
"""

import re
from typing import Any

import griffe

_TYPED = re.compile(r"^(\**\w+(?:, \**\w+)*) : (.+)$", re.MULTILINE)
_SEVERAL = re.compile(r"^(\w+(?:, \w+)+)(?: : optional)?\n((?:    .*\n?)+)", re.MULTILINE)
_JOINER = "\u2060"  # has no width, and no place in Python


def kept(text: str) -> str:
    """A docstring whose types no reader takes for Python; "optional" is told by the default.

    >>> kept('decision : {"median"}, optional').replace(_JOINER, "|")
    'decision : |{"median"}'
    """
    text = _SEVERAL.sub(_one_by_one, text)
    return _TYPED.sub(
        lambda match: f"{match[1]} : {_JOINER}{match[2].removesuffix(', optional')}", text
    )


def _one_by_one(match: re.Match[str]) -> str:
    """Parameters that share a description, each with the type that its annotation says."""
    described = match[2].rstrip("\n")
    return "".join(f"{name}\n{described}\n" for name in match[1].split(", "))


class Docstrings(griffe.Extension):
    """Mark the types in every docstring."""

    def on_object(self, *, obj: Any, **kwargs: Any) -> None:
        """Mark those of an object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = kept(obj.docstring.value)
