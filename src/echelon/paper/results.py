"""What `echelon reproduce` found, and tables of it as Markdown, CSV and LaTeX."""

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

RESULT_FORMAT = 1  # of the file results.json; the first ones have no number
_MISSING = "-"


@dataclass(frozen=True)
class Table:
    """A table that can be written as Markdown, CSV and LaTeX.

    Parameters
    ----------
    title : str
    columns : sequence of str
    rows : sequence of sequences of str
    notes : sequence of str
        Sentences below the table.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = field(default_factory=tuple)

    def markdown(self) -> str:
        """With the notes below."""
        lines = ["| " + " | ".join(self.columns) + " |"]
        lines.append("| " + " | ".join(["---"] + ["---:"] * (len(self.columns) - 1)) + " |")
        lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
                  for row in self.rows]  # fmt: skip
        notes = [""] + [f"- {note}" for note in self.notes] if self.notes else []
        return "\n".join([*lines, *notes])

    def csv(self) -> str:
        """The cells alone."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return stream.getvalue()

    def latex(self) -> str:
        """A table environment, for the package booktabs."""
        body = [" & ".join(_latex(cell) for cell in row) + r" \\" for row in self.rows]
        return "\n".join(
            [
                r"\begin{table}",
                rf"\caption{{{_latex(self.title)}}}",
                rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}",
                r"\toprule",
                " & ".join(_latex(name) for name in self.columns) + r" \\",
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
                *(rf"\par\footnotesize {_latex(note)}" for note in self.notes),
                r"\end{table}",
                "",
            ]
        )


@dataclass(frozen=True)
class Result:
    """What one experiment found; `name` says how it was run."""

    dataset: str
    name: str
    document: Mapping[str, Any]

    @property
    def backbone(self) -> str | None:
        """The network, where it is not the paper's."""
        name: str | None = self.document["experiment"].get("backbone")
        return name

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Result":
        """From a document of `echelon reproduce`; one without a number is of the first format."""
        try:
            what, number = document["experiment"], document.get("format", RESULT_FORMAT)
            result = cls(what["dataset"], what["name"], document)
        except (AttributeError, KeyError, TypeError):
            raise ValueError("this is not a result that `echelon reproduce` wrote") from None
        if type(number) is not int or number != RESULT_FORMAT:
            raise ValueError(
                f"this result of {result.dataset} was written by another echelon, in format "
                f"{number!r:.20}, and this one reads format {RESULT_FORMAT}: make it anew"
            )
        return result

    @classmethod
    def read(cls, path: str | Path) -> "Result":
        """From a file."""
        try:
            return cls.of(json.loads(Path(path).read_text(encoding="utf-8")))
        except (OSError, json.JSONDecodeError) as error:
            raise ValueError(f"{path} is not a readable result: {error}") from None

    def values(self, method: str, metric: str) -> dict[int, float]:
        """By seed; those without a seed, such as the floor, have the seed 0."""
        return {
            run["seed"] or 0: run[metric]
            for run in self.document["runs"]
            if run["method"] == method and run.get(metric) is not None
        }

    def longest_run(self, method: str) -> str:
        """How long the longest run of a method took: of the processor, where that is known."""
        what = self.document["experiment"]
        if method in what.get("longest_run_cpu", {}):
            return f"{what['longest_run_cpu'][method]:.0f} s of CPU"
        seconds = what.get("longest_run", {}).get(method)
        return _MISSING if seconds is None else f"{seconds:.0f} s"


def mean_and_deviation(values: Mapping[int, float], decimals: int) -> str:
    """The mean of values by seed, and their deviation where there are several."""
    if not values:
        return _MISSING
    numbers = list(values.values())
    text = f"{np.mean(numbers):.{decimals}f}"
    if len(numbers) > 1:
        text += f" ± {np.std(numbers, ddof=1):.{decimals}f}"
    return text


def _latex(text: str) -> str:
    text = re.sub(r"([&%$#_{}])", r"\\\1", text)
    return text.replace("±", r"$\pm$").replace("`", "'")
