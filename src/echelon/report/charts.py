"""Every chart of the page, as an Altair object; nothing is drawn anywhere else.

Colours work on light and on dark ground; text takes the colour that the page gives it. What would
be an empty chart is a sentence.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from echelon.evaluation import conformal
from echelon.evaluation.calibration import reliability as reliability_of
from echelon.evaluation.diagnostics import class_errors as errors_of
from echelon.extras import require
from echelon.report.groups import Groups
from echelon.report.labels import AxisLabels
from echelon.report.palette import FLOOR, GREY, colours
from echelon.report.training import training_chart
from echelon.runs import Comparison
from echelon.terminal import quoted

COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99)
_TEXT_CLASSES = 12  # up to which a confusion matrix shows its figures


class Titled(NamedTuple):
    """A chart, its title, and what it shows in words; without a chart the words are all."""

    title: str
    description: str
    chart: Any


def altair() -> Any:
    """The module, or an error that names the extra."""
    require("vl_convert", "reports")
    altair = require("altair", "reports")
    altair.data_transformers.disable_max_rows()
    return altair


def all_charts(comparison: Comparison) -> dict[str, Titled]:
    """The charts that the runs allow, by name."""
    makers: dict[str, Callable[[Comparison], Titled | None]] = {
        "methods": methods,
        "training": training,
        "confusion": confusion,
        "class_errors": class_errors,
        "reliability": reliability,
        "coverage": coverage,
        "crossings": crossings,
    }
    made = {name: make(comparison) for name, make in makers.items()}
    return {name: titled for name, titled in made.items() if titled is not None}


def methods(comparison: Comparison) -> Titled | None:
    """MAE of every run, and the mean of every method."""
    if len(comparison.runs) < 2:
        return None
    alt = altair()
    order = comparison.ordered
    labels = AxisLabels.of(order, line=18)
    shown = dict(zip(order, labels.names, strict=True))
    rows = [
        {"method": shown[name], "name": name, "MAE": run.metrics["mae"]}
        for name in order
        for run in comparison.runs[name]
    ]
    frame = pd.DataFrame(rows)
    of = colours(comparison.methods)
    fill = {"baseline": GREY, "floor": FLOOR}
    y = alt.Y("method:N", sort=labels.names, title=None, axis=labels.down(alt.Axis))
    # A constant is far off; the scale begins at 0 so that lengths can be compared.
    bars = (
        alt.Chart(frame)
        .mark_bar(height=14)
        .encode(
            y=y,
            x=alt.X(
                "mean(MAE):Q", title="mean absolute error in classes (less is better)", stack=None,
                axis=alt.Axis(tickCount=6),
            ),
            color=alt.Color(
                "method:N", legend=None,
                scale=alt.Scale(
                    domain=labels.names,
                    range=[of.get(name, fill.get(comparison.role(name), GREY)) for name in order],
                ),
            ),
            tooltip=["name", alt.Tooltip("mean(MAE)", format=".4f")],
        )
    )  # fmt: skip
    layers = [bars]
    several = any(len(runs) > 1 for runs in comparison.runs.values())
    if several:
        ticks = alt.Chart(frame).mark_tick(thickness=1.5, size=20, color=GREY)
        layers.append(
            ticks.encode(y=y, x="MAE:Q", tooltip=["name", alt.Tooltip("MAE", format=".4f")])
        )
    text = "; ".join(f"{name} {comparison.mean(name, 'mae'):.3f}" for name in order)
    return Titled(
        "Error of each method",
        f"Mean absolute error: {text}.{' A tick is one run.' if several else ''}",
        alt.layer(*layers).properties(height=max(26, 13 * labels.lines + 6) * len(order)),
    )


def training(comparison: Comparison) -> Titled:
    """Loss and validation metric over the epochs or rounds, and which was kept."""
    chart, words = training_chart(comparison, altair())
    return Titled("Training", words, chart)


def confusion(comparison: Comparison) -> Titled:
    """Shares of the predicted classes within each true class."""
    alt = altair()
    groups = Groups.of(comparison.classes)
    labels = AxisLabels.of(groups.names)
    classes, size = labels.names, len(groups.names)
    prediction = comparison.main_run.predictions["prediction"].astype(np.int64)
    pairs = groups.of_rank[comparison.truth] * size + groups.of_rank[prediction]
    counts = np.bincount(pairs, minlength=size * size).reshape(size, size)
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros((size, size)), where=totals > 0)
    frame = pd.DataFrame(
        {
            "true": np.repeat(classes, size),
            "predicted": np.tile(classes, size),
            "true class": np.repeat(groups.names, size),
            "predicted class": np.tile(groups.names, size),
            "rows": counts.reshape(-1),
            "share": shares.reshape(-1),
        }
    )
    base = alt.Chart(frame).encode(
        x=alt.X("predicted:N", sort=classes, title="predicted", axis=labels.across(alt.Axis)),
        y=alt.Y("true:N", sort=classes, title="true", axis=labels.down(alt.Axis)),
    )
    chart = base.mark_rect().encode(
        color=alt.Color(
            "share:Q",
            scale=alt.Scale(domain=[0, 1], range=["#e9f0f8", "#0b3d78"]),
            legend=alt.Legend(
                title="share of the true class", format=".0%", orient="top", values=[0, 0.5, 1]
            ),
        ),
        tooltip=["true class", "predicted class", "rows", alt.Tooltip("share", format=".1%")],
    )
    if size <= _TEXT_CLASSES:
        ink = alt.condition("datum.share > 0.45", alt.value("#ffffff"), alt.value("#14233a"))
        chart = chart + base.mark_text(fontSize=11).encode(
            text=alt.Text("share:Q", format=".0%"), color=ink
        )
    hits = ", ".join(
        f"{quoted(name)} {shares[k, k]:.0%}"
        for k, name in enumerate(groups.names)
        if totals[k, 0] > 0
    )
    return Titled(
        "Confusion matrix",
        f"{'Predicted in the right group' if groups.note else 'Predicted exactly right'}, by true "
        f"class: {hits}.{groups.note}",
        chart.properties(
            height=max(160, min(460, max(30, 13 * labels.lines + 6) * size)),
            usermeta={"room": labels.room},
        ),
    )


def class_errors(comparison: Comparison) -> Titled:
    """MAE of each true class."""
    alt = altair()
    prediction = comparison.main_run.predictions["prediction"].astype(np.int64)
    groups = Groups.of(comparison.classes)
    counts = np.bincount(comparison.truth, minlength=len(comparison.classes))
    errors = errors_of(comparison.truth, prediction, len(comparison.classes))
    rows = groups.summed(counts)
    total = groups.summed(np.where(counts > 0, errors, 0) * counts)
    errors = np.divide(total, rows, out=np.full(len(rows), np.nan), where=rows > 0)
    labels = AxisLabels.of(groups.names)
    columns = {"class": groups.names, "label": labels.names, "MAE": errors, "rows": rows}
    frame = pd.DataFrame(columns).dropna()
    if not frame["MAE"].any():
        return Titled("Error of each class", "Every row is predicted exactly right.", None)
    chart = (
        alt.Chart(frame)
        .mark_bar(color=_colour(comparison))
        .encode(
            x=alt.X("label:N", sort=labels.names, title="true class", axis=labels.across(alt.Axis)),
            y=alt.Y("MAE:Q", title="mean absolute error"),
            tooltip=["class", "rows", alt.Tooltip("MAE", format=".3f")],
        )
        .properties(height=200, usermeta={"room": labels.room})
    )
    words = ", ".join(f"{quoted(row['class'])} {row['MAE']:.2f}" for _, row in frame.iterrows())
    return Titled(
        "Error of each class", f"Mean absolute error by true class: {words}.{groups.note}", chart
    )


def reliability(comparison: Comparison) -> Titled:
    """How often events came true, by their predicted probability."""
    alt = altair()
    probabilities = _probabilities(comparison)
    frames, gaps = [], []
    events = ("above a class", "exactly a class")
    for of, name in zip(("exceedance", "probabilities"), events, strict=True):
        table = reliability_of(comparison.truth, probabilities, of=of)  # type: ignore[arg-type]
        frames.append(pd.DataFrame({**table._asdict(), "event": name}))
        worst = np.abs(table.predicted - table.observed)[table.rows > 0.001 * table.rows.sum()]
        gaps.append(f"{name}, at most {worst.max():.0%} off")
    frame = pd.concat(frames)
    line = (
        alt.Chart(pd.DataFrame({"predicted": [0, 1], "observed": [0, 1]}))
        .mark_line(color=GREY, strokeDash=[4, 4])
        .encode(x="predicted:Q", y="observed:Q")
    )
    chart = (
        alt.Chart(frame)
        .mark_line(point=True, color=_colour(comparison))
        .encode(
            x=alt.X(
                "predicted:Q", title="predicted probability", scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format=".0%", tickCount=5),
            ),
            y=alt.Y(
                "observed:Q", title="how often it happened", scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format=".0%"),
            ),
            strokeDash=alt.StrokeDash(
                "event:N", title=None, scale=alt.Scale(domain=events, range=[[1, 0], [6, 3]]),
                legend=alt.Legend(orient="top", labelLimit=0, symbolType="stroke"),
            ),
            tooltip=[
                "event", alt.Tooltip("predicted", format=".1%"),
                alt.Tooltip("observed", format=".1%"), "rows",
            ],
        )
        .properties(height=260)
    )  # fmt: skip
    return Titled(
        "Reliability",
        f"On the grey line, predictions come true as often as they say. That the class is "
        f"{'; that it is '.join(gaps)}.",
        line + chart,
    )


def coverage(comparison: Comparison) -> Titled:
    """The coverage of prediction intervals, and their width."""
    alt = altair()
    frame, source = coverage_table(comparison)
    if frame is None:
        return Titled("Coverage and width of prediction intervals", source, None)
    base = alt.Chart(frame).encode(
        x=alt.X("wished:Q", title="wished coverage",
                axis=alt.Axis(format=".0%", tickCount=5),
                scale=alt.Scale(domain=[0.5, 1])),
        tooltip=[
            alt.Tooltip("wished", format=".0%"), alt.Tooltip("found", format=".1%"),
            alt.Tooltip("width", format=".2f"),
        ],
    )  # fmt: skip
    wished = base.mark_line(color=GREY, strokeDash=[4, 4]).encode(y="wished:Q")
    colour = _colour(comparison)
    lowest = min(0.5, float(frame["found"].min()))
    held = base.mark_line(color=colour, point=alt.OverlayMarkDef(color=colour)).encode(
        y=alt.Y("found:Q", title="found coverage", axis=alt.Axis(format=".0%"),
                scale=alt.Scale(domain=[lowest, 1], zero=False))
    )  # fmt: skip
    width = base.mark_line(color=colour, point=alt.OverlayMarkDef(color=colour)).encode(
        y=alt.Y("width:Q", title="mean number of classes")
    )
    row = frame.iloc[(frame["wished"] - 0.9).abs().argmin()]
    return Titled(
        "Coverage and width of prediction intervals",
        f"At a wished coverage of {row['wished']:.0%}, {row['found']:.1%} of the intervals contain "
        f"the truth, and they hold {row['width']:.2f} classes on average. {source}",
        alt.vconcat((wished + held).properties(height=180), width.properties(height=180)),
    )


def coverage_table(comparison: Comparison) -> tuple[pd.DataFrame | None, str]:
    """Wished and found coverage and the mean width, and where the thresholds are from."""
    run, truth, p = comparison.main_run, comparison.truth, _probabilities(comparison)
    scores = run.predictions.get("conformal_scores")
    if scores is not None:
        source = "The thresholds are from the rows that the fit kept for them."
    elif len(truth) >= 40:
        half = np.random.default_rng(0).permutation(len(truth)) % 2 == 0
        scores = conformal.calibration_scores(truth[half], p[half])
        truth, p = truth[~half], p[~half]
        source = "The thresholds are from one half of the test rows, the figures from the other."
    else:
        return None, (
            f"There are too few test rows to check prediction intervals: {len(truth)}, of 40 that "
            f"are needed."
        )
    rows = []
    for wished in COVERAGES:
        ends = conformal.intervals(p, conformal.threshold(scores, wished))
        inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        width = (ends[:, 1] - ends[:, 0] + 1).mean()
        rows.append({"wished": wished, "found": inside.mean(), "width": width})
    return pd.DataFrame(rows), source


def crossings(comparison: Comparison) -> Titled:
    """In how many rows a method's own curve contradicted itself."""
    alt = altair()
    rows = comparison.crossings()
    if not any(row["share"] for row in rows):
        return Titled(
            "Rank inconsistency", "P(y > k) never rose with k: no curve contradicts itself.", None
        )
    of, labels = colours(comparison.methods), AxisLabels.of([row["method"] for row in rows], 18)
    frame = pd.DataFrame(rows).assign(label=labels.names)
    chart = (
        alt.Chart(frame)
        .mark_bar(height=14)
        .encode(
            y=alt.Y("label:N", sort=labels.names, title=None, axis=labels.down(alt.Axis)),
            color=alt.Color(
                "label:N", legend=None,
                scale=alt.Scale(
                    domain=labels.names, range=[of[row["method"]] for row in rows],
                ),
            ),
            x=alt.X(
                "share:Q", title="share of rows", axis=alt.Axis(format=".1%", tickCount=5),
                scale=alt.Scale(domain=[0, max(0.01, *(row["share"] for row in rows), 0.0)]),
            ),
            tooltip=[
                "method", alt.Tooltip("share", format=".2%"), alt.Tooltip("largest", format=".4f"),
            ],
        )
        .properties(height=max(26, 13 * labels.lines + 6) * len(rows))
    )  # fmt: skip
    words = "; ".join(f"{row['method']} {row['share']:.1%}" for row in rows)
    return Titled(
        "Rank inconsistency",
        f"Share of rows in which the method's own P(y > k) rose with k, before repair: {words}.",
        chart,
    )


def _colour(comparison: Comparison) -> str:
    """That of the method that is looked at closely."""
    return colours(comparison.methods)[comparison.best]


def _probabilities(comparison: Comparison) -> Any:
    p = comparison.main_run.predictions["probabilities"].astype(np.float64)
    return p / p.sum(axis=1, keepdims=True)
