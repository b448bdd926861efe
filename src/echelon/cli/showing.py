"""What commands print of runs, scores and tables, in lines that fit a terminal of 80 columns."""

import json
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from echelon.terminal import quoted

WIDTH = 80


def say(text: str) -> None:
    """Print a sentence in lines that fit; a word that is longer, as a path, stays whole."""
    print(textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False))


def score_sentence(scores: Mapping[str, float], constant: Mapping[str, float]) -> str:
    """How good predictions are, beside a constant, for who has no time for a table.

    Examples
    --------
    >>> own = {"mae": 0.3, "accuracy": 0.75, "accuracy_within": 0.98}
    >>> score_sentence(own, {"mae": 1.2})
    'The model is right in 75 % of the rows and at most one class off in 98 %. It misses by 0.300
    classes on average; always predicting the middle class misses by 1.200.'
    """
    return (
        f"The model is right in {100 * scores['accuracy']:.0f} % of the rows and at most one class "
        f"off in {100 * scores['accuracy_within']:.0f} %. It misses by {scores['mae']:.3f} classes "
        f"on average; always predicting the middle class misses by {constant['mae']:.3f}."
    )


def score_table(scores: Mapping[str, float], constant: Mapping[str, float]) -> str:
    """Every metric with its name, its direction, and what a constant has of it."""
    from echelon.evaluation.metrics import METRICS

    lines = [f"{'':<26}{'model':>9}{'constant':>10}"]
    for name, row in METRICS.items():
        beside = constant[name]
        shown = "-" if beside != beside else f"{beside:.4f}"
        lines.append(f"{name:<26}{scores[name]:>9.4f}{shown:>10}  {row.direction}")
    lines.append(
        "constant: the shares of the classes in these rows, and the middle class, for each"
    )
    return "\n".join(lines)


def show_comparison(runs: Sequence[Any], out: Path, as_json: bool) -> None:
    """Print what runs in a folder found, in words or as one document."""
    from echelon.runs import Comparison

    comparison = Comparison.of(runs)
    if as_json:
        print(json.dumps(comparison.document()))
        return
    config = comparison.main_run.config
    counts = ", ".join(f"{number:,} {subset}" for subset, number in config.rows.items())
    say(f"{config.data}: {counts} rows")
    print(comparison.text())
    for sentence in comparison.sentences():
        say(sentence)
    say(comparison.lead())
    print(f"`echelon report {out}` makes a page of this")


_SHORT_CHECK_ROWS = 20_000
_FINDINGS = 4


def show_summary(described: Any) -> None:
    """Print in a few lines what a fit is about to read; `echelon check` says more."""
    check = described.check(_SHORT_CHECK_ROWS)
    looks = described.looks()
    print(
        f"{described.name}: {len(described.cells_):,} rows"
        + (f" ({looks})" if looks else "")
        + (f"; {check.counts()}" if check.counts() else "")
    )
    left_out = [f"{name} {reason}" for name, reason in described.left_out_.items()]
    for line in left_out:
        show_lines(f"left out: {line} (--keep-ids keeps it)")
    for finding in check.findings[:_FINDINGS]:
        show_lines(finding)
    if len(check.findings) > _FINDINGS:
        more = len(check.findings) - _FINDINGS
        show_lines(f"{more} more finding{'s' * (more > 1)}: see `echelon check {described.name}`")


def show_lines(text: str, indent: str = "  ") -> None:
    """Print a sentence in lines that fit a terminal."""
    print(textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  "))


def show_check(check: Any, name: str) -> None:
    """Print what a look at a table found, in lines that fit a terminal."""
    print(f"{name}: {check.rows:,} rows, {len(check.columns):,} columns")
    width = min(24, max(len(column.name) for column in check.columns))
    for column in check.columns:
        missing = f", {100 * column.missing:.3g} % missing" if column.missing else ""
        title = column.name if len(column.name) <= width else f"{column.name[: width - 1]}…"
        first = f"  {title:<{width}}  {column.kind:<8}  "
        use = "" if column.use == "used" else f"; {column.use}"
        print(
            textwrap.fill(
                f"{column.holds}{missing}{use}",
                WIDTH,
                initial_indent=first,
                subsequent_indent=" " * len(first),
            )
        )
    if check.classes:
        counts = ", ".join(f"{quoted(label)} {rows:,}" for label, rows in check.classes.items())
        show_lines(f"classes: {counts}", indent="")
    count = len(check.findings)
    print(f"{count} finding{'s' * (count > 1)}" if count else "nothing to be looked at")
    for number, finding in enumerate(check.findings, 1):
        show_lines(f"{number}. {finding}")
