"""Every chart of the page, as an Altair object; nothing is drawn anywhere else.

Colours work on light and on dark ground; text takes the colour that the page gives it.
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
from echelon.runs import Comparison

BLUE, ORANGE, GREY = "#3b82d6", "#d97a1f", "#8a8f98"
COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99)
_TEXT_CLASSES = 12  # up to which a confusion matrix shows its figures


class Titled(NamedTuple):
    """A chart, its title, and what it shows in words."""

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


def methods(comparison: Comparison) -> Titled:
    """MAE of every run, and the mean of every method."""
    alt = altair()
    rows = [
        {"method": name, "MAE": run.metrics["mae"], "kind": comparison.role(name)}
        for name, runs in comparison.runs.items()
        for run in runs
    ]
    frame = pd.DataFrame(rows)
    order = sorted(comparison.runs, key=lambda name: comparison.mean(name, "mae"))
    y = alt.Y("method:N", sort=order, title=None)
    # A constant is far off; the scale begins at 0 so that lengths can be compared.
    bars = (
        alt.Chart(frame)
        .mark_bar(height=14)
        .encode(
            y=y,
            x=alt.X(
                "mean(MAE):Q", title="mean absolute error in ranks (less is better)", stack=None
            ),
            color=alt.Color(
                "kind:N",
                scale=alt.Scale(domain=["method", "baseline", "floor"], range=[BLUE, GREY, ORANGE]),
                legend=None,
            ),
            tooltip=["method", alt.Tooltip("mean(MAE)", format=".4f")],
        )
    )
    dots = (
        alt.Chart(frame)
        .mark_tick(thickness=2, size=18, color=ORANGE)
        .encode(y=y, x="MAE:Q", tooltip=["method", alt.Tooltip("MAE", format=".4f")])
    )
    text = "; ".join(f"{name} {comparison.mean(name, 'mae'):.3f}" for name in order)
    return Titled(
        "Error of each method",
        f"Mean absolute error: {text}. A tick is one run.",
        (bars + dots).properties(height=26 * len(comparison.runs)),
    )


def training(comparison: Comparison) -> Titled | None:
    """Loss and validation metric over the epochs."""
    alt = altair()
    rows = []
    for name in comparison.methods:
        for run in comparison.runs[name]:
            for entry in run.history:
                for key, value in entry.items():
                    if key != "epoch":
                        rows.append(
                            {
                                "run": f"{name} {run.config.seed} {run.config.split}",
                                "method": name,
                                "epoch": entry["epoch"],
                                "what": key.replace("_", " "),
                                "value": value,
                            }
                        )
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    charts = [
        alt.Chart(frame[frame["what"] == what])
        .mark_line(point=bool(frame["epoch"].max() == 1), strokeWidth=1.5)
        .encode(
            x=alt.X("epoch:Q", title="epoch", axis=alt.Axis(tickMinStep=1, format="d")),
            y=alt.Y("value:Q", title=what, scale=alt.Scale(zero=False)),
            color=alt.Color("method:N", title=None, legend=alt.Legend(orient="top")),
            detail="run:N",
            tooltip=["run", "epoch", alt.Tooltip("value", format=".4f")],
        )
        .properties(height=180)
        for what in sorted(frame["what"].unique())
    ]
    words = []
    for name in comparison.methods:
        last = comparison.runs[name][0].history
        if last:
            shown = ", ".join(f"{k} {v:.3f}" for k, v in last[-1].items() if k != "epoch")
            words.append(f"{name} ends after {len(last)} epochs with {shown}")
    return Titled(
        "Training",
        f"Loss and validation metric over the epochs. {'; '.join(words)}.",
        alt.vconcat(*charts) if len(charts) > 1 else charts[0],
    )


def confusion(comparison: Comparison) -> Titled:
    """Shares of the predicted classes within each true class."""
    alt = altair()
    groups = Groups.of(comparison.classes)
    classes, size = groups.names, len(groups.names)
    prediction = comparison.main_run.predictions["prediction"].astype(np.int64)
    pairs = groups.of_rank[comparison.truth] * size + groups.of_rank[prediction]
    counts = np.bincount(pairs, minlength=size * size).reshape(size, size)
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros((size, size)), where=totals > 0)
    frame = pd.DataFrame(
        {
            "true": np.repeat(classes, size),
            "predicted": np.tile(classes, size),
            "rows": counts.reshape(-1),
            "share": shares.reshape(-1),
        }
    )
    base = alt.Chart(frame).encode(
        x=alt.X("predicted:N", sort=classes, title="predicted", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("true:N", sort=classes, title="true"),
    )
    chart = base.mark_rect().encode(
        color=alt.Color(
            "share:Q",
            scale=alt.Scale(domain=[0, 1], range=["#e9f0f8", "#0b3d78"]),
            legend=alt.Legend(
                title="share of the true class", format=".0%", orient="top", values=[0, 0.5, 1]
            ),
        ),
        tooltip=["true", "predicted", "rows", alt.Tooltip("share", format=".1%")],
    )
    if size <= _TEXT_CLASSES:
        ink = alt.condition("datum.share > 0.45", alt.value("#ffffff"), alt.value("#14233a"))
        chart = chart + base.mark_text(fontSize=11).encode(
            text=alt.Text("share:Q", format=".0%"), color=ink
        )
    hits = ", ".join(
        f"class {name} {shares[k, k]:.0%}" for k, name in enumerate(classes) if totals[k, 0] > 0
    )
    return Titled(
        "Confusion matrix",
        f"{'Predicted in the right group' if groups.note else 'Predicted exactly right'}, by true "
        f"class: {hits}.{groups.note}",
        chart.properties(height=max(160, min(460, 30 * size))),
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
    frame = pd.DataFrame({"class": groups.names, "MAE": errors, "rows": rows}).dropna()
    chart = (
        alt.Chart(frame)
        .mark_bar(color=BLUE)
        .encode(
            x=alt.X("class:N", sort=groups.names, title="true class", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("MAE:Q", title="mean absolute error"),
            tooltip=["class", "rows", alt.Tooltip("MAE", format=".3f")],
        )
        .properties(height=200)
    )
    words = ", ".join(f"class {row['class']} {row['MAE']:.2f}" for _, row in frame.iterrows())
    return Titled(
        "Error of each class", f"Mean absolute error by true class: {words}.{groups.note}", chart
    )


def reliability(comparison: Comparison) -> Titled:
    """How often events came true, by their predicted probability."""
    alt = altair()
    probabilities = _probabilities(comparison)
    frames, gaps = [], []
    for of, name in (("exceedance", "y > k"), ("probabilities", "y = k")):
        table = reliability_of(comparison.truth, probabilities, of=of)  # type: ignore[arg-type]
        frames.append(pd.DataFrame({**table._asdict(), "event": name}))
        worst = np.abs(table.predicted - table.observed)[table.rows > 0.001 * table.rows.sum()]
        gaps.append(f"{name} at most {worst.max():.3f} off")
    frame = pd.concat(frames)
    line = (
        alt.Chart(pd.DataFrame({"predicted": [0, 1], "observed": [0, 1]}))
        .mark_line(color=GREY, strokeDash=[4, 4])
        .encode(x="predicted:Q", y="observed:Q")
    )
    chart = (
        alt.Chart(frame)
        .mark_line(point=True)
        .encode(
            x=alt.X(
                "predicted:Q", title="predicted probability", scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format=".0%"),
            ),
            y=alt.Y(
                "observed:Q", title="how often it happened", scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format=".0%"),
            ),
            color=alt.Color(
                "event:N", scale=alt.Scale(range=[ORANGE, BLUE]), legend=alt.Legend(orient="top"),
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
        f"On the dashed line, predictions come true as often as they say: {'; '.join(gaps)}.",
        line + chart,
    )


def coverage(comparison: Comparison) -> Titled | None:
    """The coverage of prediction intervals, and their width."""
    alt = altair()
    frame, source = coverage_table(comparison)
    if frame is None:
        return None
    base = alt.Chart(frame).encode(
        x=alt.X("wished:Q", title="wished coverage", axis=alt.Axis(format=".0%"),
                scale=alt.Scale(domain=[0.5, 1])),
        tooltip=[
            alt.Tooltip("wished", format=".0%"), alt.Tooltip("found", format=".1%"),
            alt.Tooltip("width", format=".2f"),
        ],
    )  # fmt: skip
    wished = base.mark_line(color=GREY, strokeDash=[4, 4]).encode(y="wished:Q")
    held = base.mark_line(color=BLUE, point=alt.OverlayMarkDef(color=BLUE)).encode(
        y=alt.Y("found:Q", title="found coverage", scale=alt.Scale(domain=[0.5, 1]),
                axis=alt.Axis(format=".0%"))
    )  # fmt: skip
    width = base.mark_line(color=ORANGE, point=alt.OverlayMarkDef(color=ORANGE)).encode(
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
        return None, ""
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
    chart = (
        alt.Chart(pd.DataFrame(rows))
        .mark_bar(height=14, color=BLUE)
        .encode(
            y=alt.Y("method:N", sort=None, title=None),
            x=alt.X(
                "share:Q", title="share of rows", axis=alt.Axis(format=".1%"),
                scale=alt.Scale(domain=[0, max(0.01, *(row["share"] for row in rows), 0.0)]),
            ),
            tooltip=[
                "method", alt.Tooltip("share", format=".2%"), alt.Tooltip("largest", format=".4f"),
            ],
        )
        .properties(height=26 * len(rows))
    )  # fmt: skip
    words = "; ".join(f"{row['method']} {row['share']:.1%}" for row in rows)
    return Titled(
        "Rank inconsistency",
        f"Share of rows in which the method's own P(y > k) rose with k, before repair: {words}.",
        chart,
    )


def _probabilities(comparison: Comparison) -> Any:
    p = comparison.main_run.predictions["probabilities"].astype(np.float64)
    return p / p.sum(axis=1, keepdims=True)
