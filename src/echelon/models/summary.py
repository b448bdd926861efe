"""The summary of a fitted cumulative link model: a frame, a table for the terminal, LaTeX, JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import pandas as pd

LINK_NAMES = {
    "logit": "proportional odds (logit)",
    "probit": "ordered probit",
    "cloglog": "proportional hazards (cloglog)",
}
RATIO_NAMES = {"logit": "odds ratio", "cloglog": "hazard ratio"}
_COEFFICIENTS = (
    "name", "term", "threshold", "estimate", "error", "z", "p_value", "lower", "upper", "ratio",
    "ratio_lower", "ratio_upper",
)  # fmt: skip
_CUTPOINTS = ("name", "estimate", "error", "lower", "upper")
_EFFECTS = (
    "column", "change", "class", "effect", "error", "z", "p_value", "lower", "upper",
)  # fmt: skip
_NUMBERS = (int, float)
_TESTS = {"brant": "Brant", "likelihood_ratio": "likelihood ratio"}


@dataclass(frozen=True)
class Summary:
    """The statistics of a fit, as values of JSON.

    Attributes
    ----------
    link : str
        The link of the model, such as ``"logit"``.
    errors : {"observed", "robust", "clustered"}
        What the standard errors come from.
    level : float
        The level of all intervals.
    rows, dropped : int
        Rows of the fit with a weight above 0, and rows left out, as a cell of theirs is missing.
    weights : {"none", "frequency", "sampling"}
        What the weights of the rows mean.
    observations : float
        What the rows count for: the sum of frequency weights, the number of rows otherwise.
    groups : int or None
        How many clusters of rows there are.
    classes : mapping from label to float
        What the rows of each label count for.
    fit : mapping
        log_likelihood, null_log_likelihood, aic, bic, mcfadden (None where weights are sampling
        weights), parameters, iterations, converged, separated.
    likelihood_ratio, wald : mapping or None
        Tests that no column matters: statistic, degrees, p_value.
    coefficients, cutpoints : list of mappings
        The estimates with all that is known of them, which the frames show.
    references : mapping from column to category
        The category that the others of its column are compared with.
    aliased : list of str
        Features that are a linear function of others, and were left out.
    proportional_odds : mapping or None
        The tests "brant" and "likelihood_ratio", each overall and by term.
    effects : list of mappings or None
        Average marginal effects on each P(y = k).
    notes : list of str
        What there is to say about the fit, in sentences.
    """

    link: str
    errors: str
    level: float
    rows: int
    dropped: int
    weights: str
    observations: float
    groups: int | None
    classes: Mapping[str, float]
    fit: Mapping[str, Any]
    likelihood_ratio: Mapping[str, Any] | None
    wald: Mapping[str, Any] | None
    coefficients: Sequence[Mapping[str, Any]]
    cutpoints: Sequence[Mapping[str, Any]]
    references: Mapping[str, str]
    aliased: Sequence[str]
    proportional_odds: Mapping[str, Any] | None
    effects: Sequence[Mapping[str, Any]] | None
    notes: Sequence[str]

    # ---- frames ------------------------------------------------------------------------------

    def frame(self) -> pd.DataFrame:
        """The coefficients: a row for each, with errors, p-values, intervals and ratios."""
        frame: pd.DataFrame = _frame(self.coefficients, _COEFFICIENTS).set_index("name")
        if self.link not in RATIO_NAMES:
            frame = frame.drop(columns=["ratio", "ratio_lower", "ratio_upper"])
        numbers = frame.columns.difference(["term", "threshold"])
        frame[numbers] = frame[numbers].astype(float)
        return frame

    def cutpoints_frame(self) -> pd.DataFrame:
        """The cut-points with their errors and intervals."""
        frame: pd.DataFrame = _frame(self.cutpoints, _CUTPOINTS).set_index("name")
        return frame

    def tests_frame(self) -> pd.DataFrame:
        """Both tests of proportional odds, overall and by term; empty where there are none."""
        rows = [
            {"test": title, "term": term, **test}
            for key, title in _TESTS.items()
            for term, test in self._tests(key).items()
        ]
        return _frame(rows, ("test", "term", "statistic", "degrees", "p_value"))

    def effects_frame(self) -> pd.DataFrame:
        """The average marginal effects; empty where they were not computed."""
        return _frame(self.effects or [], _EFFECTS)

    def _tests(self, key: str) -> dict[str, Mapping[str, Any]]:
        tests = (self.proportional_odds or {}).get(key)
        if not tests or tests["overall"] is None:
            return {}
        return {"all columns": tests["overall"], **tests["terms"]}

    # ---- JSON --------------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """All of it as values of JSON."""
        document: dict[str, Any] = json.loads(json.dumps(asdict(self), allow_nan=False))
        return document

    def json(self) -> str:
        """All of it as one document."""
        return json.dumps(self.document(), indent=2)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Summary":
        """A summary from its document."""
        names = {field.name for field in fields(cls)}
        if set(document) != names:
            wrong = sorted(set(document) ^ names)
            raise ValueError(f"a summary has no {wrong[0]!r}, or lacks it")
        texts = {"name", "term", "threshold", "column", "change", "class"}
        for table in ("coefficients", "cutpoints", "effects"):
            for row in document[table] or ():
                wrong = [
                    key
                    for key, value in row.items()
                    if not (value is None or isinstance(value, str if key in texts else _NUMBERS))
                ]
                if wrong:
                    raise ValueError(f"{wrong[0]} in the {table} of a summary is of a wrong type")
        return cls(**document)

    # ---- text --------------------------------------------------------------------------------

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """A table for the terminal."""
        parts = [self._head(), self._table_of_coefficients(), self._table_of_cutpoints()]
        parts += [self._table_of_tests(), self._table_of_effects()]
        parts.append("\n".join(f"Note: {note}" for note in self.notes))
        return "\n\n".join(part for part in parts if part)

    def _head(self) -> str:
        fit = self.fit
        counts = ", ".join(f"{name} {count:g}" for name, count in self.classes.items())
        groups = f" in {self.groups:,} groups" if self.groups is not None else ""
        lines = {
            "model": LINK_NAMES.get(self.link, self.link),
            "rows": f"{self.rows:,}{groups}"
            + (f", {self.dropped:,} with missing cells left out" if self.dropped else ""),
            "weights": "" if self.weights == "none" else self.weights,
            "classes": counts,
            "log-likelihood": f"{fit['log_likelihood']:.4f}, without columns "
            f"{fit['null_log_likelihood']:.4f}",
            "likelihood ratio": _test_words(self.likelihood_ratio),
            "Wald test": _test_words(self.wald) if self.likelihood_ratio is None else "",
            "fit": ""
            if fit["aic"] is None
            else f"AIC {fit['aic']:.2f}, BIC {fit['bic']:.2f}, McFadden {fit['mcfadden']:.4f}",
            "errors": {
                "observed": "by the observed information",
                "robust": "robust (sandwich)",
                "clustered": "robust, clustered by group",
            }[self.errors],
        }
        return "\n".join(f"{name:<18}{text}" for name, text in lines.items() if text)

    def _table_of_coefficients(self) -> str:
        share = f"{100 * self.level:g} %"
        head = ["", "estimate", "error", "z", "p", share, ""]
        ratio = RATIO_NAMES.get(self.link)
        head += [ratio, share, ""] if ratio else []
        body = []
        for row in self.coefficients:
            name = row["name"] + (f" [{row['threshold']}]" if row["threshold"] else "")
            cells = [name, *_numbers(row, "estimate", "error", "z"), _p(row["p_value"])]
            cells += _numbers(row, "lower", "upper")
            cells += _numbers(row, "ratio", "ratio_lower", "ratio_upper") if ratio else []
            body.append(cells)
        return _aligned([head, *body])

    def _table_of_cutpoints(self) -> str:
        body = [[row["name"], *_numbers(row, "estimate", "error")] for row in self.cutpoints]
        return _aligned([["cut-point", "estimate", "error"], *body])

    def _table_of_tests(self) -> str:
        if self.proportional_odds is None:
            return ""
        lines = [["proportional odds", "test", "chi-square", "df", "p"]]
        for key, title in _TESTS.items():
            for term, test in self._tests(key).items():
                statistic = "" if test["statistic"] is None else f"{test['statistic']:.3f}"
                lines.append([term, title, statistic, str(test["degrees"]), _p(test["p_value"])])
        return _aligned(lines) if len(lines) > 1 else ""

    def _table_of_effects(self) -> str:
        if not self.effects:
            return ""
        labels = list(self.classes)
        lines = [["average change of P", "", *labels]]
        rows: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
        for row in self.effects:
            rows.setdefault((row["column"], row["change"]), {})[str(row["class"])] = row
        for (column, change), by_class in rows.items():
            shown = [_number(by_class[label]["effect"]) for label in labels]
            errors = [f"({_number(by_class[label]['error'])})" for label in labels]
            lines += [[column, change, *shown], ["", "(error)", *errors]]
        return _aligned(lines, texts=2)

    # ---- LaTeX -------------------------------------------------------------------------------

    def latex(self) -> str:
        """The coefficients and cut-points as a table of LaTeX (package booktabs)."""
        ratio = RATIO_NAMES.get(self.link)
        share = f"{100 * self.level:g}\\,\\%"
        columns = ["", "Estimate", "Std. error", "$z$", "$p$"]
        columns += [ratio.capitalize(), f"{share} interval"] if ratio else [f"{share} interval"]
        lines = [
            f"\\begin{{tabular}}{{l{'r' * (len(columns) - 1)}}}",
            "\\toprule",
            " & ".join(columns) + " \\\\",
            "\\midrule",
        ]
        for row in self.coefficients:
            name = row["name"] + (f" [{row['threshold']}]" if row["threshold"] else "")
            ends = ("ratio_lower", "ratio_upper") if ratio else ("lower", "upper")
            cells = [_escaped(name), *_numbers(row, "estimate", "error", "z"), _p(row["p_value"])]
            cells += _numbers(row, "ratio") if ratio else []
            low, high = _numbers(row, *ends)
            cells.append(f"[{low}, {high}]" if low else "")
            lines.append(" & ".join(_minus(cell) for cell in cells) + " \\\\")
        lines.append("\\midrule")
        for row in self.cutpoints:
            cells = [_escaped(row["name"]), *_numbers(row, "estimate", "error")]
            rest = [""] * (len(columns) - len(cells))
            lines.append(" & ".join(_minus(cell) for cell in [*cells, *rest]) + " \\\\")
        return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"])


def _frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    frame: pd.DataFrame = pd.DataFrame({name: [row[name] for row in rows] for name in columns})
    return frame


def _number(value: float | None) -> str:
    """Four digits that say something, and no more.

    Examples
    --------
    >>> [_number(value) for value in (0.012345, -123.456, 0.0, 2.5e-7, None)]
    ['0.01235', '-123.5', '0', '2.5e-07', '']
    """
    return "" if value is None else f"{value:.4g}"


def _numbers(row: Mapping[str, Any], *names: str) -> list[str]:
    return [_number(row[name]) for name in names]


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _test_words(test: Mapping[str, Any] | None) -> str:
    if test is None or test["statistic"] is None:
        return ""
    p = _p(test["p_value"])
    shown = f"p {p}" if p.startswith("<") else f"p = {p}"
    return f"chi-square {test['statistic']:.3f} on {test['degrees']} degrees of freedom, {shown}"


def _aligned(lines: Sequence[Sequence[str | None]], texts: int = 1) -> str:
    """Columns of text on the left, numbers on the right."""
    cells = [[str(cell or "") for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    shown = [
        "  ".join(
            cell.ljust(width) if place < texts else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]
    return "\n".join([shown[0], "-" * (sum(widths) + 2 * len(widths) - 2), *shown[1:]])


_SPECIAL = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "|": "\\textbar{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
}


def _escaped(text: str) -> str:
    r"""Text as LaTeX prints it.

    Examples
    --------
    >>> print(_escaped("50% of a_b"))
    50\% of a\_b
    """
    return "".join(_SPECIAL.get(mark, mark) for mark in text)


def _minus(cell: str) -> str:
    cell = cell.replace("<0.001", "$<$0.001")
    return f"$-${cell[1:]}" if cell.startswith("-") else cell
