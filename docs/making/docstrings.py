"""Docstrings as they are written: a griffe extension that marks the types in them as words.

Read as Python, "array, shape (K,)" would become a pair and a call, and the first of the choices
``{"median", "mean"}`` would be shown as a default that it is not; parameters that share a
description would share the default of the first. Markdown knows neither lists of terms nor examples
as a docstring has them outside its sections, so these are spelled out.
"""

import re
from typing import Any

import griffe

_TYPED = re.compile(r"^(\**\w+(?:, \**\w+)*) : (.+)$", re.MULTILINE)
_SEVERAL = re.compile(r"^(\w+(?:, \w+)+)( : .*)?\n((?:    .*\n?)+)", re.MULTILINE)
_SECTION = re.compile(r"^\w[\w ]*\n-{3,}$", re.MULTILINE)
_TERM = re.compile(r"^(\S.*)\n((?:    .*\n)+)", re.MULTILINE)
_SESSION = re.compile(r"^>>> (?:.*\n)+?(?=\n|\Z)", re.MULTILINE)
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
    """Parameters that share a description, each with its own default."""
    typed = "" if match[2] in (None, " : optional") else match[2]
    described = match[3].rstrip("\n")
    return "".join(f"{name}{typed}\n{described}\n" for name in match[1].split(", "))


def spelled_out(text: str) -> str:
    r"""What stands before the sections of a docstring, its terms and its examples in Markdown.

    >>> print(spelled_out("What.\n\n`dim`\n    The last,\n    or another.\n"))
    What.
    <BLANKLINE>
    - **`dim`**: The last,
      or another.
    <BLANKLINE>
    """
    first = _SECTION.search(text)
    end = first.start() if first else len(text)
    opening = text[:end].rstrip("\n") + "\n"
    opening = _SESSION.sub(lambda match: f"```pycon\n{match[0]}```\n", opening)
    return _TERM.sub(_item, opening) + ("\n" + text[end:] if first else "")


def _item(match: re.Match[str]) -> str:
    """A term and what is said of it, as an item of a list."""
    lines = [line.strip() for line in match[2].splitlines()]
    return f"- **{match[1]}**: " + "\n  ".join(lines) + "\n"


class Docstrings(griffe.Extension):
    """Mark the types in every docstring."""

    def on_object(self, *, obj: Any, **kwargs: Any) -> None:
        """Mark those of an object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = kept(spelled_out(obj.docstring.value))

    def on_package(self, *, pkg: Any, **kwargs: Any) -> None:
        """Mark those of the package itself, which is no object inside another."""
        self.on_object(obj=pkg)
