"""The statistics of a linear model on the page: a forest plot, and tables in words.

A run whose model has statistics holds them in `statistics.json`; nothing is computed here.
"""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from echelon.models.summary import LINK_NAMES, RATIO_NAMES, Summary
from echelon.report.charts import Titled, altair
from echelon.report.palette import COLOURS, GREY
from echelon.runs import Comparison

_SHOWN = 40  # coefficients of the plot and of the table
_FARTHEST = 1e6  # ratio that an axis can still show


def found_statistics(comparison: Comparison) -> tuple[str, Summary] | None:
    """The statistics of the run that is shown closely, or else of the first that has some."""
    runs = [(comparison.best, comparison.main_run)]
    runs += [(name, each[0]) for name, each in comparison.runs.items()]
    for name, run in runs:
        document = run.outcome.get("statistics")
        if document is not None:
            return name, Summary.of(document)
    return None


def statistics_charts(comparison: Comparison) -> dict[str, Titled]:
    """The forest plot, where a run has statistics with intervals."""
    statistics = found_statistics(comparison)
    if statistics is None:
        return {}
    _, summary = statistics
    ratio = RATIO_NAMES.get(summary.link)
    keys = ("ratio", "ratio_lower", "ratio_upper") if ratio else ("estimate", "lower", "upper")
    rows = [
        {
            "feature": _label(row),
            **dict(zip(("estimate", "lower", "upper"), (row[k] for k in keys), strict=True)),
        }
        for row in _largest(summary)
        if all(row[key] is not None for key in keys)
    ]
    if ratio:
        rows = [
            row for row in rows if row["lower"] > 1 / _FARTHEST and row["upper"] < _FARTHEST
        ]  # fmt: skip
    if not rows:
        return {}
    alt = altair()
    share = f"{100 * summary.level:g} %"
    title = f"{ratio or 'coefficient'} with {share} interval"
    scale = alt.Scale(type="log", zero=False) if ratio else alt.Scale(zero=False)
    frame = pd.DataFrame(rows)
    order = [row["feature"] for row in rows]
    base = alt.Chart(frame).encode(
        y=alt.Y("feature:N", sort=order, title=None, axis=alt.Axis(labelLimit=220)),
        tooltip=[
            "feature",
            *(alt.Tooltip(k, format=".3g") for k in ("estimate", "lower", "upper")),
        ],
    )
    lines = base.mark_rule(color=COLOURS[0], strokeWidth=2).encode(
        x=alt.X("lower:Q", title=title, scale=scale), x2="upper:Q"
    )
    dots = base.mark_point(filled=True, size=60, color=COLOURS[0]).encode(
        x=alt.X("estimate:Q", scale=scale)
    )
    nothing = (
        alt.Chart(pd.DataFrame({"none": [1.0 if ratio else 0.0]}))
        .mark_rule(color=GREY, strokeDash=[4, 4])
        .encode(x=alt.X("none:Q", scale=scale))
    )
    middle = 1.0 if ratio else 0.0
    clear = [row["feature"] for row in rows if not row["lower"] <= middle <= row["upper"]]
    words = ", ".join(clear) if clear else "none of them"
    described = (
        f"{(ratio or 'coefficient').capitalize()} of each feature with its {share} interval; the "
        f"dashed line is no effect. Intervals beside it: {words}."
    )
    chart = (nothing + lines + dots).properties(height=22 * len(rows) + 20)
    return {"statistics": Titled("What each column does", described, chart)}


def statistics_section(comparison: Comparison, figure: str) -> tuple[str, str] | None:
    """The heading and what stands below it, with the figure of the plot in it; None without any."""
    statistics = found_statistics(comparison)
    if statistics is None:
        return None
    name, summary = statistics
    fit, tests = summary.fit, summary.likelihood_ratio or summary.wald
    sentences = [
        f"{LINK_NAMES.get(summary.link, summary.link).capitalize()}, fitted to {summary.rows:,} "
        f"rows; log-likelihood {fit['log_likelihood']:.2f}, without columns "
        f"{fit['null_log_likelihood']:.2f}."
    ]
    if tests is not None and tests["p_value"] is not None:
        sentences.append(f"That no column matters has the p-value {_p(tests['p_value'])}.")
    notes = "".join(f"<li>{_text(note)}</li>" for note in summary.notes)
    return (
        f"Statistics of {name}",
        f"<p>{_text(' '.join(sentences))} An interval says how well a number is known if the model "
        "is right, not whether a column causes anything.</p>"
        f"{figure}{_coefficients(summary)}{_tests(summary)}{_effects(summary)}"
        f"<ul>{notes}</ul>",
    )


def _coefficients(summary: Summary) -> str:
    ratio = RATIO_NAMES.get(summary.link)
    share = f"{100 * summary.level:g} %"
    head = ["feature", "coefficient", "error", "p"]
    head += [ratio, f"{share} from", "to"] if ratio else [f"{share} from", "to"]
    keys = ["ratio", "ratio_lower", "ratio_upper"] if ratio else ["lower", "upper"]
    body = [
        [_label(row), _number(row["estimate"]), _number(row["error"]), _p(row["p_value"])]
        + [_number(row[key]) for key in keys]
        for row in _largest(summary)
    ]
    body += [
        [f"cut-point {row['name']}", _number(row["estimate"]), _number(row["error"])]
        + [""] * (len(head) - 3)
        for row in summary.cutpoints
    ]
    return _table("Coefficients", head, body)


def _tests(summary: Summary) -> str:
    rows = summary.tests_frame().to_dict("records")
    if not rows:
        return ""
    body = [
        [row["term"], row["test"], _number(row["statistic"]), row["degrees"], _p(row["p_value"])]
        for row in rows
    ]
    return "<h3>Do columns act alike at every threshold?</h3>" + _table(
        "Tests of proportional odds", ["term", "test", "chi-square", "df", "p"], body
    )


def _effects(summary: Summary) -> str:
    if not summary.effects:
        return ""
    head = ["column", "change", "class", "effect on P", "error", "p"]
    body = [
        [row["column"], row["change"], row["class"], _number(row["effect"]), _number(row["error"]),
         _p(row["p_value"])]
        for row in summary.effects
    ]  # fmt: skip
    table = _table("Average marginal effects", head, body)
    return f"<details><summary>Average effects on each probability</summary>{table}</details>"


def _table(label: str, head: Sequence[str], body: Sequence[Sequence[Any]]) -> str:
    columns = "".join(f'<th scope="col">{_text(name)}</th>' for name in head)
    rows = "".join(
        f'<tr><th scope="row">{_text(first)}</th>'
        + "".join(
            f'<td data-label="{_text(name)}">{_text(cell)}</td>'
            for name, cell in zip(head[1:], rest, strict=True)
        )
        + "</tr>"
        for first, *rest in body
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{_text(label)}">'
        f'<table class="cards"><thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _largest(summary: Summary) -> list[Mapping[str, Any]]:
    """The coefficients in their order; of very many, those that are known best."""
    rows = list(summary.coefficients)
    if len(rows) <= _SHOWN:
        return rows
    return sorted(rows, key=lambda row: -abs(row["z"] or 0.0))[:_SHOWN]


def _label(row: Mapping[str, Any]) -> str:
    return f"{row['name']} [{row['threshold']}]" if row["threshold"] else str(row["name"])


def _number(value: Any) -> str:
    return "" if value is None or value != value else f"{value:.4g}"


def _p(value: Any) -> str:
    if value is None or value != value:
        return ""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _text(value: Any) -> str:
    return html.escape(str(value))
