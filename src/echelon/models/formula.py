"""Formulas of statistics, as ``y ~ age + C(sex)``: from the text to terms of columns.

formulaic (extra `formula`) reads the operators ``+ - : * ** ( )``; what stands between them is read
here and never run: a column, ``C(column)``, ``C(column, Treatment("reference"))``, or arithmetic
of columns.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from echelon.extras import require
from echelon.models.expressions import Expression

_COLOURS = re.compile(r"\x1b?\[[0-9;]*m|[⧛⧚]")  # of formulaic's messages


@dataclass(frozen=True)
class Factor:
    """What a term is a product of.

    Parameters
    ----------
    text : str
        As it stands in the formula; a column alone is its name.
    column : str, optional
        Of a column alone, or of ``C(column)``.
    is_category : bool
        Whether ``C`` says that the column holds categories.
    reference : str, optional
        The category that others are compared with, where one is named.
    """

    text: str
    column: str | None = None
    is_category: bool = False
    reference: str | None = None

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it needs."""
        if self.column is not None:
            return frozenset([self.column])
        return Expression(self.text).columns


@dataclass(frozen=True)
class Formula:
    """The terms of a formula, without the constant, which the cut-points are.

    Parameters
    ----------
    target : str or None
        What stands before ``~``.
    terms : tuple of tuples of Factor
        Each a product of factors.
    """

    target: str | None
    terms: tuple[tuple[Factor, ...], ...]

    @property
    def columns(self) -> list[str]:
        """The columns that it needs, in the order of their first use."""
        used = (name for term in self.terms for factor in term for name in sorted(factor.columns))
        return list(dict.fromkeys(used))

    @property
    def categories(self) -> set[str]:
        """The columns that ``C`` makes categories."""
        return {
            factor.column
            for term in self.terms
            for factor in term
            if factor.is_category and factor.column is not None
        }


def read_formula(text: str, columns: Sequence[str] = ()) -> Formula:
    """The terms of a formula.

    Parameters
    ----------
    text : str
        With or without a target before ``~``.
    columns : sequence of str
        What ``.`` stands for, but for the target.

    Examples
    --------
    >>> formula = read_formula("pain ~ age * C(sex, Treatment('m')) + log(dose)")
    >>> formula.target, formula.columns
    ('pain', ['age', 'sex', 'dose'])
    >>> [":".join(factor.text for factor in term) for term in formula.terms]
    ['age', "C(sex, Treatment('m'))", "age:C(sex, Treatment('m'))", 'log(dose)']
    """
    parsers = require("formulaic.parser", "formulas")
    if not isinstance(text, str) or len(text) > 10_000:
        raise ValueError(f"a formula must be a text such as 'y ~ age + C(sex)'; got {text!r:.80}")
    left = text.partition("~")[0].strip().strip("`") if "~" in text else None
    available = [name for name in columns if name != left]
    context = {"__formulaic_variables_available__": available} if available else {}
    try:
        parsed = parsers.DefaultFormulaParser().get_terms(text, context=context)
        right = list(getattr(parsed, "rhs", parsed))
        targets = list(getattr(parsed, "lhs", ()))
        products = [list(term.factors) for term in right]
    except Exception as error:
        reason = _COLOURS.sub("", str(error)).strip().partition("\n")[0]
        raise ValueError(
            f"the formula {text!r} cannot be read ({reason}); write one such as "
            f"'y ~ age + C(sex) + age:dose'"
        ) from None
    if len(targets) > 1:
        raise ValueError(f"a formula has one target before ~; {text!r} has {len(targets)}")
    terms = []
    for factors in products:
        named = [factor for factor in factors if factor.eval_method.name != "LITERAL"]
        if len(named) < len(factors) and [str(factor.expr) for factor in factors] != ["1"]:
            raise ValueError(
                f"the formula {text!r} multiplies a term by a number; leave the number out, or "
                f"write I(2 * age)"
            )
        if named:
            terms.append(
                tuple(_factor(f.expr, f.eval_method.name == "LOOKUP") for f in named)
            )  # fmt: skip
    if not terms:
        raise ValueError(f"the formula {text!r} has no column after ~; name one at least")
    return Formula(str(targets[0]).strip("`") if targets else None, tuple(terms))


def _factor(text: str, is_column: bool) -> Factor:
    if is_column:
        return Factor(text, column=text)
    if re.match(r"C\s*\(", text):
        return _category(text)
    expression = Expression(text)
    if not expression.columns:
        raise ValueError(f"{text!r} in a formula names no column")
    return Factor(text)


def _category(text: str) -> Factor:
    """``C(column)``, with the reference if there is one."""
    quoted: dict[str, str] = {}

    def shortened(match: "re.Match[str]") -> str:
        quoted[f"_quoted_{len(quoted)}"] = match.group(1)
        return f"_quoted_{len(quoted) - 1}"

    wrong = ValueError(
        f"a formula cannot hold {text[:80]!r}: write C(column) or C(column, Treatment('reference'))"
    )
    try:
        call = ast.parse(re.sub(r"`([^`]+)`", shortened, text), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise wrong from None
    if not isinstance(call, ast.Call) or not 1 <= len(call.args) <= 2 or call.keywords:
        raise wrong
    column, *rest = call.args
    if not isinstance(column, ast.Name) or not isinstance(call.func, ast.Name):
        raise wrong
    reference = None
    if rest:
        inner = rest[0]
        if not isinstance(inner, ast.Call) or _last_name(inner.func) not in (
            "Treatment",
            "treatment",
        ):
            raise wrong
        values = [*inner.args, *(keyword.value for keyword in inner.keywords)]
        if len(values) != 1 or not isinstance(values[0], ast.Constant):
            raise wrong
        reference = str(values[0].value)
    return Factor(text, quoted.get(column.id, column.id), True, reference)


def _last_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None
