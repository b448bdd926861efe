"""The section of the page on what matters to a model, which way, and why rows get what they get."""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from echelon.report.charts import Titled, altair
from echelon.report.palette import COLOURS, GREY, TRUTH
from echelon.runs import Comparison
from echelon.terminal import visible

_COLUMNS = 20  # in the table and the chart of importance
_EFFECTS = 6  # columns whose effects are drawn
_MATTERS = 0.01  # of the largest importance, from which on an effect is drawn
_WORDS = 5
_ANSWERS = 12  # whole numbers, up to which an axis names each
_LONGEST = 40  # characters of a name in a chart


@dataclass(frozen=True)
class ExplainedSection:
    """What the page shows of an explanation; all of it is empty where there is none.

    Attributes
    ----------
    charts : dict from name to Titled
    reasons : dict from the number of a row to its sentences
    """

    document: Mapping[str, Any] | None = None
    best: str = ""
    charts: dict[str, Titled] = field(default_factory=dict)
    reasons: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def contents(self, figures: Callable[..., str]) -> list[str]:
        """What stands in the section; `figures` gives the places of charts by their names."""
        if self.document is None:
            return []
        measured = (
            "What shuffling a column adds to the ranked probability score, with the standard error "
            "over the shuffles."
            if self.document.get("truth")
            else "What shuffling a column would add to the ranked probability score if the model "
            "were right, as there were no labels to compare with."
        )
        effects = figures(*(name for name in self.charts if name.startswith("effect")))
        shown = (
            "<h3>Which way</h3><p>How the expected class changes with a column, from value to "
            "value in the rows that lie there; the band is how much that differs between rows. "
            "Below it, the same for the chance of each class or a higher one.</p>"
            f"{effects}"
        )
        return [
            f"<p>{measured} It tells of the model and not of the world: of columns that say the "
            "same, the model may use one, and shuffling it leaves the other.</p>"
            '<div class="scroll" tabindex="0" role="region" aria-label="Importance of columns">'
            f"{self._table()}</div>{figures('importance')}{self._interaction()}"
            f"{shown if effects else ''}"
        ]

    def _table(self) -> str:
        assert self.document is not None
        rows = "".join(
            f'<tr><th scope="row">{_text(_name(row["columns"]))}</th>'
            f'<td data-label="importance">{row["mean"]:.4f}</td>'
            f'<td data-label="± error">{_error(row["standard_error"])}</td>'
            f'<td class="words">{_text(row["direction"])}</td></tr>'
            for row in self.document["importance"][:_COLUMNS]
        )
        return (
            '<table class="cards"><thead><tr><th scope="col">column</th>'
            '<th scope="col">importance</th>'
            '<th scope="col">± error</th><th scope="col" class="words">which way</th></tr></thead>'
            f"<tbody>{rows}</tbody></table>"
        )

    def _interaction(self) -> str:
        assert self.document is not None
        pair = self.document["interaction"]
        if pair is None:
            return ""
        first, second = (_text(name) for name in pair["columns"])
        return (
            f"<p>Of the most important columns, {first} and {second} work together most: "
            f"{pair['share']:.1%} of the variance of the expected class needs both.</p>"
        )


def explained_section(comparison: Comparison) -> ExplainedSection:
    """What explains the run that the page looks at closely."""
    document = comparison.main_run.explanation
    if document is None:
        return ExplainedSection()
    charts = {"importance": importance_chart(document)}
    largest = max((row["mean"] for row in document["importance"]), default=0.0)
    matter = {
        name
        for row in document["importance"]
        for name in row["columns"]
        if row["mean"] > _MATTERS * largest
    }
    drawn = [effect for effect in document["effects"] if effect["column"] in matter]
    for place, effect in enumerate(drawn[:_EFFECTS]):
        charts[f"effect_{place + 1}"] = effect_chart(
            effect, [comparison.classes[k + 1] for k in document["thresholds"]]
        )
    reasons = {str(row["row"]): {"sentences": _sentences(row)} for row in document["reasons"]}
    return ExplainedSection(document, comparison.best, charts, reasons)


def _sentences(row: Mapping[str, Any]) -> list[str]:
    said = [visible(sentence) for sentence in row["sentences"]]
    words = [f"“{word['words']}” {word['rank_change']:+.2f}" for word in row["words"][:_WORDS]]
    if words:
        said.append(visible(f"words, by what they add to the expected class: {', '.join(words)}"))
    return said


# ---- charts --------------------------------------------------------------------------------------


def importance_chart(document: Mapping[str, Any]) -> Titled:
    """Bars of importance with their errors."""
    alt = altair()
    rows = [
        {
            "column": _name(row["columns"]),
            "importance": row["mean"],
            "lower": row["mean"] - (row["standard_error"] or 0.0),
            "upper": row["mean"] + (row["standard_error"] or 0.0),
        }
        for row in document["importance"][:_COLUMNS]
    ]
    frame = pd.DataFrame(rows)
    y = alt.Y("column:N", sort=None, title=None)
    title = "what shuffling adds to the score"
    bars = (
        alt.Chart(frame)
        .mark_bar(height=12, color=COLOURS[0])
        .encode(
            y=y,
            x=alt.X(
                "importance:Q",
                title=title,
                scale=alt.Scale(nice=False),
                axis=alt.Axis(tickCount=6),
            ),
            tooltip=["column", alt.Tooltip("importance", format=".4f")],
        )
    )
    errors = (
        alt.Chart(frame)
        .mark_rule(color=TRUTH, strokeWidth=3)
        .encode(y=y, x=alt.X("lower:Q", title=title), x2="upper:Q")
    )
    first = rows[0]
    return Titled(
        "Importance of columns",
        f"{first['column']} matters most: shuffling it adds {first['importance']:.4f} to the "
        f"score. {len(rows)} of {len(document['importance'])} are shown.",
        (bars + errors).properties(height=20 * len(rows)),
    )


def effect_chart(effect: Mapping[str, Any], above: Sequence[str]) -> Titled:
    """What a column does to the expected class, and to the chance of each class or a higher one."""
    alt = altair()
    is_category = effect["kind"] == "category"
    points, chances = _points(effect, above)
    kind = {"number": "Q", "date": "T"}.get(effect["kind"], "N")
    name = _short(effect["column"])
    sort = list(dict.fromkeys(points["cell"])) if is_category else alt.Undefined
    scale = alt.Scale(zero=False, nice=False) if kind == "Q" else alt.Undefined
    x = alt.X(f"cell:{kind}", title=name, sort=sort, scale=scale, axis=_axis(kind, points, alt))
    tooltip = [alt.Tooltip("effect", format="+.3f"), alt.Tooltip("rows")]
    base = alt.Chart(points)
    band = base.encode(x=x, y=alt.Y("lower:Q", title="expected class"), y2="upper:Q")
    line = base.encode(x=x, y=alt.Y("effect:Q", title="expected class"), tooltip=tooltip)
    if is_category:
        upper = line.mark_bar(color=COLOURS[0], size=16) + band.mark_rule(
            color=TRUTH, strokeWidth=2
        )
    else:
        upper = band.mark_area(color=COLOURS[0], opacity=0.25) + line.mark_line(color=COLOURS[0])
    zero = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(color=GREY, strokeDash=[4, 4])
    digits = "+.0%" if chances["effect"].abs().max() >= 0.03 else "+.1%"
    colours = alt.SchemeParams(name="viridis", extent=[0.25, 0.9])  # seen on light and dark
    lower = alt.Chart(chances).encode(
        x=x,
        y=alt.Y("effect:Q", title="chance", axis=alt.Axis(format=digits)),
        color=alt.Color(
            "or higher:N", sort=None, scale=alt.Scale(scheme=colours),
            legend=alt.Legend(orient="bottom", columns=2, title="this class or higher"),
        ),
        tooltip=["or higher", alt.Tooltip("effect", format="+.1%")],
    )  # fmt: skip
    marked = lower.mark_point(filled=True, size=60) if is_category else lower.mark_line()
    return Titled(
        f"Effect of {name}",
        _effect_words(effect),
        alt.vconcat(
            (upper + zero.encode(y="zero:Q")).properties(height=150),
            marked.properties(height=150),
        ),
    )


def _axis(kind: str, points: pd.DataFrame, alt: Any) -> Any:
    """The axis of a column: months of dates, and no fractions between few whole numbers."""
    if kind == "T":
        return alt.Axis(format="%Y-%m", labelOverlap=True)
    cells = sorted(set(points["cell"])) if kind == "Q" else []
    if 0 < len(cells) <= _ANSWERS and all(cell == round(cell) for cell in cells):
        return alt.Axis(values=cells, format="d")
    return alt.Undefined


def _points(effect: Mapping[str, Any], above: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The points of the effect on the expected class, and of those on the chances."""
    points, chances = [], []
    for i, cell in enumerate(effect["cells"]):
        if cell is None and effect["kind"] != "category":
            continue  # a gap has no place on the axis
        shown = _short(str(cell)) if effect["kind"] == "category" else cell
        shown = "missing" if cell is None else shown
        value, spread = effect["expected_rank"][i], effect["spread"][i]
        points.append(
            {
                "cell": shown,
                "effect": value,
                "lower": value - spread,
                "upper": value + spread,
                "rows": effect["rows"][i],
            }
        )
        chances += [
            {"cell": shown, "effect": of_threshold, "or higher": _short(label)}
            for of_threshold, label in zip(effect["exceedance"][i], above, strict=True)
        ]
    return pd.DataFrame(points), pd.DataFrame(chances)


def _effect_words(effect: Mapping[str, Any]) -> str:
    values = effect["expected_rank"]
    cells = ["missing" if cell is None else _cell(cell) for cell in effect["cells"]]
    low, high = values.index(min(values)), values.index(max(values))
    said = (
        f"The expected class is lowest at {visible(cells[low])} ({values[low]:+.2f}) and highest "
        f"at {visible(cells[high])} ({values[high]:+.2f})."
    )
    if effect["kind"] != "category" and effect["cells"][-1] is None:
        said += f" Where it is missing: {values[-1]:+.2f}."
    return said


def _cell(cell: str | float) -> str:
    return cell if isinstance(cell, str) else f"{cell:.4g}"


def _name(columns: Sequence[str]) -> str:
    return _short(" + ".join(columns))


def _short(name: str) -> str:
    shown = visible(name)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


def _error(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _text(value: Any) -> str:
    return html.escape(visible(str(value)))
