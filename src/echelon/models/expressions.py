"""Arithmetic of columns in a formula, as log(age) or I(age ** 2): read, and computed, never run.

A saved model names its expressions, and nothing in a file is trusted: what is not in the small
grammar here (numbers, columns, the four operations, powers and a few functions) is refused before
anything is computed.
"""

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_MOST_CHARACTERS = 400
_MOST_DEPTH = 30

FUNCTIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "I": lambda x: x,
    "abs": torch.abs,
    "exp": torch.exp,
    "log": torch.log,
    "log10": torch.log10,
    "log1p": torch.log1p,
    "log2": torch.log2,
    "sqrt": torch.sqrt,
}
_OPERATIONS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
}


@dataclass(frozen=True)
class Expression:
    """Arithmetic of columns.

    Parameters
    ----------
    text : str
        As it stands in a formula; names that are no words stand between backticks.

    Examples
    --------
    >>> expression = Expression("log(`body mass` / 2) + I(age ** 2)")
    >>> sorted(expression.columns)
    ['age', 'body mass']
    >>> expression.of({"age": torch.tensor([3.0]), "body mass": torch.tensor([2.0])}).tolist()
    [9.0]
    >>> Expression("__import__('os')").columns
    Traceback (most recent call last):
    ...
    ValueError: a formula cannot hold "__import__('os')": it takes columns, numbers, + - * / ** and
    the functions I, abs, exp, log, log10, log1p, log2, sqrt
    """

    text: str

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it needs."""
        tree, names = self._parsed()
        names_used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        return frozenset(names.get(name, name) for name in names_used - set(FUNCTIONS) - {"np"})

    def of(self, values: Mapping[str, Tensor]) -> Tensor:
        """Its value for each row, (n,), from the columns, (n,) each."""
        tree, names = self._parsed()
        given = {**values, **{short: values[name] for short, name in names.items()}}
        value = _value(tree, given)
        if not isinstance(value, Tensor):
            raise self._refused()
        return value

    def _parsed(self) -> tuple[ast.expr, dict[str, str]]:
        """Its tree, of allowed nodes alone, and the names that stood between backticks."""
        if len(self.text) > _MOST_CHARACTERS:
            raise self._refused()
        names: dict[str, str] = {}

        def shortened(match: "re.Match[str]") -> str:
            short = f"_quoted_{len(names)}"
            names[short] = match.group(1)
            return short

        try:
            tree = ast.parse(re.sub(r"`([^`]+)`", shortened, self.text), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self._refused() from None
        if not _is_allowed(tree, _MOST_DEPTH):
            raise self._refused()
        return tree, names

    def _refused(self) -> ValueError:
        return ValueError(
            f"a formula cannot hold {self.text[:80]!r}: it takes columns, numbers, + - * / ** and "
            f"the functions {', '.join(FUNCTIONS)}"
        )


def _is_allowed(node: ast.AST, depth: int) -> bool:
    if depth == 0:
        return False
    if isinstance(node, ast.BinOp):
        parts: tuple[ast.AST, ...] = (node.left, node.right)
        return type(node.op) in _OPERATIONS and all(_is_allowed(part, depth - 1) for part in parts)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, (ast.USub, ast.UAdd)) and _is_allowed(node.operand, depth - 1)
    if isinstance(node, ast.Call):
        is_plain = len(node.args) == 1 and not node.keywords
        return is_plain and _function(node.func) is not None and _is_allowed(
            node.args[0], depth - 1
        )  # fmt: skip
    if isinstance(node, ast.Constant):
        value: Any = node.value
        return type(value) in (int, float) and abs(value) < 1e100
    return isinstance(node, ast.Name)


def _function(node: ast.AST) -> Callable[[Tensor], Tensor] | None:
    """A function by its name, with or without np. before it."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return FUNCTIONS.get(node.attr) if node.value.id == "np" else None
    return FUNCTIONS.get(node.id) if isinstance(node, ast.Name) else None


def _value(node: ast.AST, values: Mapping[str, Tensor]) -> Any:
    if isinstance(node, ast.BinOp):
        return _OPERATIONS[type(node.op)](_value(node.left, values), _value(node.right, values))
    if isinstance(node, ast.UnaryOp):
        inner = _value(node.operand, values)
        return -inner if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.Call):
        function = _function(node.func)
        assert function is not None
        return function(torch.as_tensor(_value(node.args[0], values), dtype=torch.float64))
    if isinstance(node, ast.Constant):
        return float(node.value)  # type: ignore[arg-type]
    assert isinstance(node, ast.Name)
    return values[node.id]
